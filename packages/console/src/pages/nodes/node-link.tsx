import type { NodeJson } from '../../api/cluster-types.ts';
import { nodeName } from '../../app/cluster-hook.ts';
import { addressOf } from '../../logic/location.ts';
import { Text } from '../../kit/text.tsx';

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
