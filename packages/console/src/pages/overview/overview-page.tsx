import { activity } from '../../api/cluster.ts';
import { type ClusterState, nodeName, useCluster } from '../../app/cluster-hook.ts';
import { useResource } from '../../app/hooks.ts';
import { Badge } from '../../kit/badge.tsx';
import { Command } from '../../kit/command.tsx';
import { Card, Facts, Page } from '../../kit/page.tsx';
import { Loaded } from '../../kit/states.tsx';
import { Text } from '../../kit/text.tsx';
import { Since } from '../../kit/time.tsx';
import { count } from '../../logic/format.ts';
import { addressOf } from '../../logic/location.ts';
import { NodeLink } from '../nodes/node-link.tsx';
import { NodeTable } from '../nodes/node-table.tsx';
import { Activity } from './activity.tsx';
import { Conditions } from './conditions.tsx';

const ACTIVITY_EVERY_MS = 15_000;

/** What an operator wants to know first: whether all is well, and what to do otherwise. */
export function OverviewPage() {
  const cluster = useCluster();
  const history = useResource('activity', activity, { everyMs: ACTIVITY_EVERY_MS });
  return (
    <Page title="Overview">
      <Loaded of={cluster}>
        {(answer) => (
          <>
            <Conditions conditions={answer.health.conditions} nodes={answer.nodes} />
            <Card>
              <Facts facts={factsOf(answer)} />
            </Card>
            <Card isFlush title="Nodes" aside={<a href={addressOf('nodes')}>All nodes</a>}>
              <NodeTable cluster={answer} />
            </Card>
          </>
        )}
      </Loaded>
      <Activity of={history} cluster={cluster.data} />
      <Command words={['remora', 'status']} />
    </Page>
  );
}

function factsOf(cluster: ClusterState): readonly (readonly [string, preact.ComponentChildren])[] {
  const {
    masterLeader,
    leadingMs = 0,
    version,
    authentication,
    health,
    nodes,
    answeringNode,
    clusterId,
    atMs,
  } = cluster;
  return [
    ['Cluster', <Text key="id" value={clusterId} />],
    [
      'Leader of the masters',
      masterLeader === undefined ? (
        <Badge key="none" tone="bad">
          none
        </Badge>
      ) : (
        <span key="leader">
          <NodeLink id={masterLeader} nodes={nodes} />{' '}
          <span class="muted">
            for <Since at={atMs - leadingMs} />
          </span>
        </span>
      ),
    ],
    ['Nodes', count(health.nodes)],
    [
      'Ranges',
      <a key="ranges" href={addressOf('ranges')}>
        {count(health.ranges)}
      </a>,
    ],
    [
      'Version in force',
      <a key="version" href={addressOf('settings')}>
        {version.inForce}
        {version.newest !== version.inForce && ` (${version.newest} is possible)`}
      </a>,
    ],
    ['Authentication', authentication ? 'on' : 'off: everybody who reaches a port may do everything'],
    ['This page is from', <Text key="this" value={nodeName(nodes, answeringNode)} />],
  ];
}
