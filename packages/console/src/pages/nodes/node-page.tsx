import type { NodeJson } from '@remora/gateway/http/json/cluster';
import { why } from '../../api/cluster.ts';
import type { ClusterState } from '../../app/cluster-hook.ts';
import { type Resource, useResource } from '../../app/hooks.ts';
import { useLive } from '../../app/live.ts';
import { Badge } from '../../kit/badge.tsx';
import { Command } from '../../kit/command.tsx';
import { Card, Facts, Page } from '../../kit/page.tsx';
import { Empty, Loaded, Note } from '../../kit/states.tsx';
import { Text } from '../../kit/text.tsx';
import { bytes, count, percent, span } from '../../logic/format.ts';
import { addressOf } from '../../logic/location.ts';
import { disturbances, dutyProgress } from '../../logic/node-duty.ts';
import { Conditions } from '../overview/conditions.tsx';
import { Reasons } from '../scheduling/reasons.tsx';
import { NodeActions } from './node-actions.tsx';
import { isUnheard, NodeState } from './node-table.tsx';

const WHY_EVERY_MS = 5_000;

export function NodePage({ id, cluster }: { readonly id: number; readonly cluster: Resource<ClusterState> }) {
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

function NodeFacts({ node, cluster }: { readonly node: NodeJson; readonly cluster: ClusterState }) {
  const conditions = cluster.health.conditions.filter(({ nodeId }) => nodeId === node.id);
  const labels = Object.entries(node.labels);
  return (
    <>
      <StopAdvice node={node} cluster={cluster} />
      {conditions.length > 0 && <Conditions conditions={conditions} nodes={cluster.nodes} />}
      <Card>
        <Facts
          facts={[
            ['State', <NodeState key="state" node={node} atMs={cluster.atMs} />],
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
            ['Data', isUnheard(node) ? 'unknown' : bytes(node.bytes)],
            [
              'Disk',
              node.capacityBytes > 0
                ? `${bytes(node.availableBytes)} of ${bytes(node.capacityBytes)} free (${percent(node.availableBytes / node.capacityBytes)})`
                : 'unknown',
            ],
            ['Release', node.version],
            ['Address for clients', <Text key="client" value={node.clientAddress} />],
            ['Address for other nodes', <Text key="peer" value={node.peerAddress} />],
            ['Address for HTTP', <Text key="http" value={node.httpAddress} />],
            ...(node.maintenanceLeftMs > 0 ? [['Maintenance ends in', span(node.maintenanceLeftMs)] as const] : []),
            ...(isUnheard(node) ? [['Labels', 'unknown: the node has not reported yet'] as const] : []),
            ...labels.map(([name, value]) => [`Label ${name}`, <Text key={name} value={value} />] as const),
          ]}
        />
      </Card>
    </>
  );
}

/** While a node gives things away: how far it is, and what stopping it would still disturb. */
function StopAdvice({ node, cluster }: { readonly node: NodeJson; readonly cluster: ClusterState }) {
  const requestsPerS = useLive('now')?.nodes.find(({ nodeId }) => nodeId === node.id)?.requestsPerS ?? undefined;
  const progress = dutyProgress(node);
  if (progress === undefined) return null;
  const isGateway = node.roles.includes('gateway');
  const rest = disturbances({ isGateway, leadsMasters: node.id === cluster.masterLeader, requestsPerS });
  return (
    <Note>
      <p role="status">
        <b>
          <Text value={progress.text} />
        </b>{' '}
        {!progress.isDone
          ? 'Wait before you stop it.'
          : rest.length === 0
            ? 'It is safe to stop: no client notices.'
            : 'It is safe to stop. What a stop still disturbs for a moment:'}
      </p>
      {progress.isDone && rest.length > 0 && (
        <ul>
          {rest.map((line) => (
            <li key={line}>{line}</li>
          ))}
        </ul>
      )}
    </Note>
  );
}
