import type { ClusterJson, NodeJson } from '@remora/gateway/http/json/cluster';
import { why } from '../../api/cluster.ts';
import { type Resource, useResource } from '../../app/hooks.ts';
import { Badge } from '../../kit/badge.tsx';
import { Command } from '../../kit/command.tsx';
import { Card, Facts, Page } from '../../kit/page.tsx';
import { Empty, Loaded } from '../../kit/states.tsx';
import { Text } from '../../kit/text.tsx';
import { bytes, count, percent, span } from '../../logic/format.ts';
import { addressOf } from '../../logic/location.ts';
import { Conditions } from '../overview/conditions.tsx';
import { Reasons } from '../scheduling/reasons.tsx';
import { NodeActions } from './node-actions.tsx';
import { NodeState } from './node-table.tsx';

const WHY_EVERY_MS = 5_000;

export function NodePage({ id, cluster }: { readonly id: number; readonly cluster: Resource<ClusterJson> }) {
  const reasons = useResource(`why ${id}`, (signal) => why('nodes', id, signal), { everyMs: WHY_EVERY_MS });
  const node = cluster.data?.nodes.find((each) => each.id === id);
  return (
    <Page
      title="Node"
      subject={<Text value={node?.name ?? `node ${id}`} />}
      subjectText={node?.name ?? `node ${id}`}
      trail={[{ text: 'Nodes', href: addressOf('nodes') }]}
      actions={node && <NodeActions node={node} done={cluster.reload} />}
    >
      <Loaded of={cluster}>
        {(answer) =>
          node === undefined ? (
            <Empty title={`The cluster has no node ${id}.`} />
          ) : (
            <NodeFacts node={node} cluster={answer} />
          )
        }
      </Loaded>
      <Reasons of={reasons} title="Why the node is as it is" />
      <Command words={['remora', 'admin', 'nodes', 'show', node?.name ?? String(id)]} />
    </Page>
  );
}

function NodeFacts({ node, cluster }: { readonly node: NodeJson; readonly cluster: ClusterJson }) {
  const conditions = cluster.health.conditions.filter(({ nodeId }) => nodeId === node.id);
  const labels = Object.entries(node.labels);
  return (
    <>
      {conditions.length > 0 && <Conditions conditions={conditions} nodes={cluster.nodes} />}
      <Card>
        <Facts
          facts={[
            ['State', <NodeState key="state" node={node} />],
            ['Id', node.id],
            [
              'Roles',
              <span key="roles">
                {node.roles.join(', ')}{' '}
                {node.id === cluster.masterLeader && <Badge tone="info">leads the masters</Badge>}
              </span>,
            ],
            ['Leaders', count(node.leaders)],
            ['Replicas', count(node.replicas)],
            ['Data', bytes(node.bytes)],
            [
              'Disk',
              node.capacityBytes > 0
                ? `${bytes(node.availableBytes)} of ${bytes(node.capacityBytes)} free (${percent(node.availableBytes / node.capacityBytes)})`
                : 'unknown',
            ],
            ['Release', node.version],
            ['Clients', <Text key="client" value={node.clientAddress} />],
            ['Nodes', <Text key="peer" value={node.peerAddress} />],
            ['HTTP', <Text key="http" value={node.httpAddress} />],
            ...(node.maintenanceLeftMs > 0 ? [['Maintenance ends in', span(node.maintenanceLeftMs)] as const] : []),
            ...labels.map(([name, value]) => [`Label ${name}`, <Text key={name} value={value} />] as const),
          ]}
        />
      </Card>
    </>
  );
}
