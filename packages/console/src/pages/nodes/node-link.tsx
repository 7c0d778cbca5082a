import type { NodeJson } from '@remora/gateway/http/json/cluster';
import { nodeName } from '../../app/cluster-hook.ts';
import { Text } from '../../kit/text.tsx';
import { addressOf } from '../../logic/location.ts';

export function NodeLink({ id, nodes }: { readonly id: number; readonly nodes: readonly NodeJson[] | undefined }) {
  if (id === 0) return <span class="muted">none</span>;
  return (
    <a href={addressOf('nodes', { node: id })}>
      <Text value={nodeName(nodes, id)} max={40} />
    </a>
  );
}

export function RangeLink({ id }: { readonly id: number }) {
  return (
    <a class="mono" href={addressOf('ranges', { range: id })}>
      {id}
    </a>
  );
}
