/** Leaders, replicas, bytes and loads that are spread unevenly. */
import { type Case, HOUR, MIB, nodes, ring, settings, together } from './clusters.ts';
import { even, isLeader, leadersEven, perNode, spread } from './outcomes.ts';
import { SimulatedCluster } from './simulated-cluster.ts';

export const BALANCE_CASES: readonly Case[] = [
  {
    name: 'a balanced cluster is left alone',
    cluster: () => ring({ nodes: nodes(5), settings: settings() }, 40, () => ({ readsPerS: 100, writesPerS: 20 })),
    operatorsMax: 0,
    settlesInS: 0,
    stillS: HOUR,
    problems: even,
  },
  {
    name: 'one node leads everything, on 3 nodes',
    cluster: () => together({ nodes: nodes(3), settings: settings() }, 10, [1, 2, 3]),
    operatorsMax: 7,
    settlesInS: 60,
    stillS: HOUR,
    problems: even,
  },
  {
    name: 'one node leads everything, on 5 nodes with 200 ranges, instructions get lost and copies fail',
    cluster: () => {
      const cluster = ring({ nodes: nodes(5), settings: settings(), lossPercent: 5 }, 200);
      for (const range of cluster.ranges.values()) range.leader = [...range.voters.keys()].sort()[0];
      return cluster;
    },
    operatorsMax: 200,
    settlesInS: 600,
    stillS: HOUR,
    problems: even,
  },
  {
    name: 'leaders can be evened out only over nodes in between',
    cluster: () => {
      // Node 1 shares ranges with 2 only, 2 with 3, 3 with 4: each pair differs by less than what is worth a transfer.
      const cluster = new SimulatedCluster({ nodes: nodes(4), settings: settings({ replicas: 2 }) });
      const pairs = [
        ...Array(6).fill([1, 2]),
        ...Array(5).fill([2, 3]),
        ...Array(4).fill([3, 4]),
        [4, 3],
        [4, 3],
        [4, 3],
      ];
      for (const voters of pairs) cluster.addRange(voters);
      cluster.scheduling.schedulers.pause('replica-count', Number.POSITIVE_INFINITY);
      return cluster;
    },
    operatorsMax: 3,
    settlesInS: 30,
    stillS: HOUR,
    problems: leadersEven,
  },
  {
    name: 'all ranges on 3 of 5 nodes',
    cluster: () => together({ nodes: nodes(5), settings: settings() }, 40, [1, 2, 3]),
    // 48 replicas have to move; leaders spread over the three at once, and over all as replicas arrive.
    operatorsMax: 48 + 50,
    settlesInS: 600,
    stillS: HOUR,
    problems: even,
  },
  {
    name: 'large ranges on some nodes, small ones on others, as many on each',
    cluster: () => {
      const cluster = new SimulatedCluster({ nodes: nodes(6), settings: settings() });
      for (let i = 0; i < 60; i++) {
        const large = i % 2 === 0;
        cluster.addRange(large ? [1, 2, 3] : [4, 5, 6], { bytes: large ? 512 * MIB : 8 * MIB });
      }
      return cluster;
    },
    operatorsMax: 160,
    settlesInS: 1_800,
    stillS: HOUR,
    problems: (cluster) => [
      ...even(cluster),
      ...spread(
        'bytes',
        perNode(cluster, (range) => range.bytes),
        { percent: 10, atLeast: 300 * MIB },
      ),
    ],
  },
  {
    name: 'large and small ranges, and 3 of 10 copies never end: halves of exchanges are not what remains',
    cluster: () => {
      const cluster = new SimulatedCluster({ nodes: nodes(6), settings: settings(), lossPercent: 30 });
      for (let i = 0; i < 60; i++) {
        const large = i % 2 === 0;
        cluster.addRange(large ? [1, 2, 3] : [4, 5, 6], { bytes: large ? 512 * MIB : 8 * MIB });
      }
      return cluster;
    },
    operatorsMax: 450,
    settlesInS: 6_000,
    stillS: HOUR,
    problems: (cluster) => [
      ...even(cluster),
      ...spread(
        'bytes',
        perNode(cluster, (range) => range.bytes),
        { percent: 10, atLeast: 300 * MIB },
      ),
    ],
  },
  {
    name: 'several hot ranges on one node',
    cluster: () =>
      ring({ nodes: nodes(5), settings: settings() }, 40, (i) => ({ readsPerS: i % 5 === 0 ? 4_000 : 100 })),
    operatorsMax: 60,
    settlesInS: 900,
    stillS: HOUR,
    problems: (cluster) => [
      ...even(cluster),
      ...spread(
        'reads',
        perNode(cluster, (range, nodeId) => range.readsPerS * isLeader(range, nodeId)),
        {
          percent: 60,
          atLeast: 4_000,
        },
      ),
    ],
  },
  {
    name: 'one hot range: what is with it goes, and it is not passed around',
    cluster: () => ring({ nodes: nodes(5), settings: settings() }, 40, (i) => ({ readsPerS: i === 7 ? 50_000 : 10 })),
    operatorsMax: 16,
    settlesInS: 600,
    stillS: HOUR,
    problems: even,
  },
  {
    name: 'heavy writes on three of six nodes',
    cluster: () => {
      const cluster = new SimulatedCluster({ nodes: nodes(6), settings: settings() });
      for (let i = 0; i < 60; i++) {
        cluster.addRange(i % 2 === 0 ? [1, 2, 3] : [4, 5, 6], { writesPerS: i % 2 === 0 ? 1_000 : 10 });
      }
      return cluster;
    },
    // Each replica moves about once, one against another; leaders follow.
    operatorsMax: 200,
    settlesInS: 1_800,
    stillS: HOUR,
    problems: (cluster) => [
      ...even(cluster),
      ...spread(
        'writes',
        perNode(cluster, ({ writesPerS }) => writesPerS),
        { percent: 25, atLeast: 1_000 },
      ),
    ],
  },
  {
    name: 'loads that waver by 10 % start nothing',
    cluster: () => {
      const cluster = ring({ nodes: nodes(5), settings: settings() }, 50, () => ({
        readsPerS: 2_000,
        writesPerS: 500,
      }));
      cluster.noisePercent = 10;
      return cluster;
    },
    operatorsMax: 0,
    settlesInS: 0,
    stillS: HOUR,
    problems: even,
  },
];
