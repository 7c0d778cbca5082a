/** Nodes that die, restart, are drained or go for good. */
import { type Case, GIB, HOUR, killAll, LARGE, MIB, nodes, reviveAll, ring, settings, zones } from './clusters.ts';
import { emptyNode, even, leadersEven, ledNowhere, zonesApart } from './outcomes.ts';
import type { SimulatedCluster } from './simulated-cluster.ts';

export const FAILURE_CASES: readonly Case[] = [
  {
    name: 'a node is killed for good',
    cluster: () => ring({ nodes: nodes(5), settings: settings() }, 40),
    events: { 10: (cluster) => cluster.kill(2) },
    operatorsMax: 24 + 30,
    settlesInS: 400,
    stillS: HOUR,
    problems: even,
  },
  {
    name: 'a node is killed, and comes back before its replicas count as lost',
    cluster: () => ring({ nodes: nodes(5), settings: settings() }, 40),
    events: { 10: (cluster) => cluster.kill(2), 50: (cluster) => cluster.revive(2) },
    operatorsMax: 20,
    settlesInS: 400,
    stillS: HOUR,
    problems: even,
  },
  {
    name: 'one of 3 nodes is killed: nothing can be done, and nothing is tried',
    cluster: () => ring({ nodes: nodes(3), settings: settings() }, 30),
    events: { 10: (cluster) => cluster.kill(2) },
    operatorsMax: 10,
    settlesInS: 200,
    stillS: HOUR,
    problems: leadersEven,
  },
  {
    name: 'a zone of three is lost, and comes back',
    cluster: () => ring({ nodes: zones(9, 3), settings: settings() }, 90),
    events: {
      10: (cluster) => killAll(cluster, [1, 4, 7]),
      1200: (cluster) => reviveAll(cluster, [1, 4, 7]),
    },
    // Each range gets a replica elsewhere, and one back in the zone.
    operatorsMax: 90 + 90 + 120,
    settlesInS: 3_000,
    stillS: HOUR,
    problems: (cluster) => [...even(cluster), ...zonesApart(cluster)],
  },
  {
    name: 'nodes restart one after the other',
    cluster: () => ring({ nodes: nodes(5), settings: settings() }, 50),
    events: Object.fromEntries(
      [1, 2, 3, 4, 5].flatMap((nodeId) => [
        [nodeId * 120, (cluster: SimulatedCluster) => cluster.kill(nodeId)],
        [nodeId * 120 + 20, (cluster: SimulatedCluster) => cluster.revive(nodeId)],
      ]),
    ),
    operatorsMax: 5 * 20,
    settlesInS: 1_200,
    stillS: HOUR,
    problems: even,
  },
  {
    name: 'nodes are drained and restarted one after the other, in maintenance windows longer than the down time',
    cluster: () => ring({ nodes: nodes(5), settings: settings() }, 50),
    events: Object.fromEntries(
      [1, 2, 3, 4, 5].flatMap((nodeId) => [
        [nodeId * 300, (c: SimulatedCluster) => c.setDuty(nodeId, 'maintenance', c.nowMs + 280_000)],
        [nodeId * 300 + 60, (c: SimulatedCluster) => c.kill(nodeId)],
        [nodeId * 300 + 200, (c: SimulatedCluster) => c.revive(nodeId)],
        [nodeId * 300 + 210, (c: SimulatedCluster) => c.setDuty(nodeId, 'serving')],
      ]),
    ),
    operatorsMax: 5 * 35,
    settlesInS: 2_600,
    stillS: HOUR,
    problems: even,
  },
  {
    name: 'a node is drained',
    cluster: () => ring({ nodes: nodes(4), settings: settings() }, 40),
    events: { 10: (cluster) => cluster.setDuty(1, 'draining') },
    operatorsMax: 20,
    settlesInS: 300,
    stillS: HOUR,
    problems: (cluster) => [...ledNowhere(cluster, 1), ...leadersEven(cluster)],
  },
  {
    name: 'a node is decommissioned, with losses and failures',
    cluster: () => ring({ nodes: nodes(6), settings: settings(), lossPercent: 5 }, 60),
    events: { 10: (cluster) => cluster.setDuty(3, 'decommissioning') },
    operatorsMax: 30 + 10 + 60,
    settlesInS: 2_400,
    stillS: HOUR,
    problems: (cluster) => [...emptyNode(cluster, 3), ...even(cluster)],
  },
  {
    name: 'a node that is down is removed',
    cluster: () => ring({ nodes: nodes(5), settings: settings({ replicaDownAfterMs: 86_400_000 }) }, 40),
    events: { 10: (cluster) => cluster.kill(5), 40: (cluster) => cluster.setDuty(5, 'removed') },
    operatorsMax: 24 + 30,
    settlesInS: 600,
    stillS: HOUR,
    problems: (cluster) => [...emptyNode(cluster, 5), ...even(cluster)],
  },
  {
    name: 'all nodes are full, and one is lost: nothing moves',
    cluster: () =>
      ring({ nodes: nodes(5, () => ({ capacityBytes: 10 * GIB })), settings: settings() }, 50, () => ({
        bytes: 310 * MIB,
      })),
    events: { 10: (cluster) => cluster.kill(2) },
    operatorsMax: 20,
    settlesInS: 300,
    stillS: HOUR,
    problems: leadersEven,
  },
  {
    name: '200 nodes, 20,000 ranges: all leaders on a third of them, and a node is lost',
    cluster: () => {
      const cluster = ring({ nodes: zones(200, 5), settings: LARGE, heartbeatTicks: 60 }, 20_000);
      for (const range of cluster.ranges.values()) {
        const voters = [...range.voters.keys()];
        range.leader = voters.find((nodeId) => nodeId % 3 === 1) ?? voters[0];
      }
      return cluster;
    },
    events: { 10: (cluster) => cluster.kill(77) },
    operatorsMax: 13_400 + 300 + 1_300,
    settlesInS: 1_500,
    stillS: 600,
    problems: even,
  },
];
