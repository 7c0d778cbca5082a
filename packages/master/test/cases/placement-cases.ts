/** Where replicas are, and how many: zones, space, new nodes, other numbers. */
import { type Case, GIB, HOUR, MIB, nodes, ring, settings, together } from './clusters.ts';
import { allReplicated, even, leadersEven, perNode, zonesApart } from './outcomes.ts';
import { SimulatedCluster } from './simulated-cluster.ts';

const HALF_AN_HOUR_MS = 30 * 60_000;

export const PLACEMENT_CASES: readonly Case[] = [
  {
    name: 'a sixth node joins',
    cluster: () => ring({ nodes: nodes(5), settings: settings() }, 40),
    events: { 10: (cluster) => void cluster.addNode() },
    operatorsMax: 20 + 15,
    settlesInS: 600,
    stillS: HOUR,
    problems: even,
  },
  {
    name: 'a small disk is nearly full',
    cluster: () =>
      ring({ nodes: nodes(5, (i) => ({ capacityBytes: (i === 0 ? 4 : 40) * GIB })), settings: settings() }, 50, () => ({
        bytes: 128 * MIB,
      })),
    operatorsMax: 20,
    settlesInS: 600,
    stillS: HOUR,
    problems: (cluster) => {
      const used = perNode(cluster, ({ bytes }) => bytes)[0] ?? 0;
      return [...allReplicated(cluster), ...(used <= 3.6 * GIB ? [] : [`node 1 holds ${used / GIB} GiB`])];
    },
  },
  {
    name: 'a small disk is nearly full, and gives back only much later what has left it',
    cluster: () =>
      ring(
        {
          nodes: nodes(5, (i) => ({ capacityBytes: (i === 0 ? 4 : 40) * GIB })),
          settings: settings(),
          freesAfterMs: HALF_AN_HOUR_MS,
        },
        50,
        () => ({ bytes: 128 * MIB }),
      ),
    operatorsMax: 20,
    settlesInS: 600,
    stillS: HOUR,
    problems: (cluster) => {
      const used = perNode(cluster, ({ bytes }) => bytes)[0] ?? 0;
      return [...allReplicated(cluster), ...(used >= 3 * GIB ? [] : [`node 1 holds only ${used / GIB} GiB`])];
    },
  },
  {
    name: 'replicas are put into three zones',
    cluster: () => {
      const cluster = new SimulatedCluster({
        nodes: nodes(6, (i) => ({ labels: { zone: `z${i >> 1}` } })),
        settings: settings(),
      });
      for (let i = 0; i < 30; i++) cluster.addRange(i % 2 === 0 ? [1, 2, 3] : [4, 5, 6]);
      return cluster;
    },
    operatorsMax: 30 + 50,
    settlesInS: 1_200,
    stillS: HOUR,
    problems: (cluster) => [...even(cluster), ...zonesApart(cluster)],
  },
  {
    name: 'two zones for three replicas: as far apart as possible, and then at rest',
    cluster: () => ring({ nodes: nodes(6, (i) => ({ labels: { zone: `z${i >> 2}` } })), settings: settings() }, 30),
    operatorsMax: 60,
    settlesInS: 1_200,
    stillS: HOUR,
    problems: (cluster) => [...allReplicated(cluster), ...zonesApart(cluster), ...leadersEven(cluster)],
  },
  {
    name: 'a zone with one node only cannot be evened out',
    cluster: () =>
      ring(
        {
          nodes: [{ labels: { zone: 'a' } }, ...nodes(4, (i) => ({ labels: { zone: i < 2 ? 'b' : 'c' } }))],
          settings: settings(),
        },
        30,
      ),
    operatorsMax: 90,
    settlesInS: 1_200,
    stillS: HOUR,
    problems: (cluster) => [...allReplicated(cluster), ...zonesApart(cluster), ...leadersEven(cluster)],
  },
  {
    name: 'more replicas are wanted',
    cluster: () => ring({ nodes: nodes(7), settings: settings() }, 35),
    events: { 10: (cluster) => cluster.scheduling.configure(settings({ replicas: 5 })) },
    operatorsMax: 70 + 30,
    settlesInS: 1_200,
    stillS: HOUR,
    problems: even,
  },
  {
    name: 'fewer replicas are wanted',
    cluster: () => ring({ nodes: nodes(7), settings: settings({ replicas: 5 }) }, 35),
    events: { 10: (cluster) => cluster.scheduling.configure(settings({ replicas: 3 })) },
    operatorsMax: 70 + 30,
    settlesInS: 1_200,
    stillS: HOUR,
    problems: even,
  },
  {
    name: 'a group of ranges is scattered',
    cluster: () => together({ nodes: nodes(9), settings: settings() }, 60, [1, 2, 3]),
    events: {
      2: (cluster) => cluster.scheduling.schedulers.scatter.request([...cluster.ranges.keys()], cluster.nowMs),
    },
    operatorsMax: 60 + 40,
    settlesInS: 900,
    stillS: HOUR,
    problems: even,
  },
];
