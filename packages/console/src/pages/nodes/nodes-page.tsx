import { useCluster } from '../../app/cluster-hook.ts';
import { Command } from '../../kit/command.tsx';
import { Card, Page } from '../../kit/page.tsx';
import { Loaded } from '../../kit/states.tsx';
import { numberOf } from '../../logic/location.ts';
import type { PageProps } from '../page-props.ts';
import { NodePage } from './node-page.tsx';
import { NodeTable } from './node-table.tsx';

export function NodesPage({ query }: PageProps) {
  const id = numberOf(query, 'node');
  const cluster = useCluster();
  if (id !== undefined) return <NodePage id={id} cluster={cluster} />;
  return (
    <Page title="Nodes">
      <Card isFlush>
        <Loaded of={cluster}>{(state) => <NodeTable cluster={state} />}</Loaded>
      </Card>
      <Command words={['remora', 'admin', 'nodes']} />
    </Page>
  );
}
