/**
 * Neighbours that have become small, and what keeps splits and merges from undoing each other (schedulers/merge.ts).
 */
import { DEFAULT_SETTINGS } from '../../src/scheduling/index.ts';
import { type Case, HOUR, MIB, nodes, ring, settings, together } from './clusters.ts';
import { even } from './outcomes.ts';
import type { SimulatedCluster } from './simulated-cluster.ts';

const QUIET_S = 60;
const QUIET = settings({ merging: { ...DEFAULT_SETTINGS.merging, quietMs: QUIET_S * 1_000 } });
const SMALL = { bytes: MIB };
/** A range is split at 10,000 requests per second, so two are not merged that have 5,000 together. */
const HALF_OF_HOT = 5_000;

function count(cluster: SimulatedCluster, ranges: number, changes: { splits: number; merges: number }): string[] {
  const { splits, merges } = cluster;
  const found: string[] = [];
  if (cluster.ranges.size !== ranges) found.push(`${cluster.ranges.size} ranges, not ${ranges}`);
  if (splits > changes.splits) found.push(`${splits} splits, not ${changes.splits} at most`);
  if (merges > changes.merges) found.push(`${merges} merges, not ${changes.merges} at most`);
  return found;
}

/** Ranges are split by their leaders too. */
const spec = (count: number) => ({ nodes: nodes(count), settings: QUIET, splits: true });

export const MERGE_CASES: readonly Case[] = [
  {
    name: 'small neighbours become one range, two by two, each after the quiet time',
    cluster: () => together(spec(3), 8, [1, 2, 3], () => SMALL),
    operatorsMax: 7 + 8,
    settlesInS: 3 * (QUIET_S + 30) + 30,
    stillS: HOUR,
    problems: (cluster) => [...even(cluster), ...count(cluster, 1, { splits: 0, merges: 7 })],
  },
  {
    name: 'small neighbours on other nodes are brought together first, and balance stays',
    cluster: () => ring(spec(5), 12, () => SMALL),
    // Of 12 ranges 11 are merged, each after one move at most; leaders and replicas are balanced meanwhile.
    operatorsMax: 11 + 11 + 15,
    settlesInS: 4 * (QUIET_S + 120),
    stillS: HOUR,
    problems: (cluster) => count(cluster, 1, { splits: 0, merges: 11 }),
  },
  {
    name: 'only what is small together is merged',
    // 6 and 6 are, 12 and 6 are not.
    cluster: () => together(spec(3), 6, [1, 2, 3], () => ({ bytes: 6 * MIB })),
    operatorsMax: 3 + 5,
    // A range whose neighbour was merged into it rests before its leader is moved.
    settlesInS: QUIET_S + 180,
    stillS: HOUR,
    problems: (cluster) => count(cluster, 3, { splits: 0, merges: 3 }),
  },
  {
    name: 'borders that people chose stay, in an empty cluster too',
    cluster: () => ring(spec(3), 40, () => ({ bytes: 0, chosen: true })),
    operatorsMax: 0,
    settlesInS: 0,
    stillS: HOUR,
    problems: (cluster) => count(cluster, 40, { splits: 0, merges: 0 }),
  },
  {
    name: 'unless a setting says otherwise',
    cluster: () => {
      const merging = { ...QUIET.merging, chosenBorders: true };
      const chosen = { ...spec(3), settings: settings({ ...QUIET, merging }) };
      return together(chosen, 4, [1, 2, 3], () => ({ bytes: 0, chosen: true }));
    },
    operatorsMax: 3 + 4,
    settlesInS: 2 * (QUIET_S + 30) + 30,
    stillS: HOUR,
    problems: (cluster) => count(cluster, 1, { splits: 0, merges: 3 }),
  },
  {
    name: 'a range that was split for its load stays split while the load lasts, whatever it wavers',
    cluster: () => {
      const cluster = together(spec(3), 1, [1, 2, 3], () => ({ ...SMALL, readsPerS: 2 * HALF_OF_HOT + 2_000 }));
      cluster.noisePercent = 10;
      return cluster;
    },
    operatorsMax: 2,
    settlesInS: 120,
    stillS: HOUR,
    problems: (cluster) => count(cluster, 2, { splits: 1, merges: 0 }),
  },
  {
    name: 'and is merged when the load has gone, once',
    cluster: () => together(spec(3), 1, [1, 2, 3], () => ({ ...SMALL, readsPerS: 3 * HALF_OF_HOT })),
    events: {
      300: (cluster) => {
        for (const range of cluster.ranges.values()) range.readsPerS = 10;
      },
    },
    operatorsMax: 8,
    settlesInS: 300 + QUIET_S + 60,
    stillS: HOUR,
    problems: (cluster) => count(cluster, 1, { splits: 1, merges: 1 }),
  },
  {
    name: 'neighbours with less than half of the load are merged, and not split for it again though it wavers',
    cluster: () => {
      const cluster = together(spec(3), 2, [1, 2, 3], () => ({ ...SMALL, readsPerS: HALF_OF_HOT / 2 - 300 }));
      cluster.noisePercent = 10;
      return cluster;
    },
    operatorsMax: 3,
    settlesInS: QUIET_S + 60,
    stillS: HOUR,
    problems: (cluster) => count(cluster, 1, { splits: 0, merges: 1 }),
  },
  {
    name: 'neighbours that grow fast are not merged, as they would be split within the quiet time',
    // In a minute the two write 66 MiB.
    cluster: () => together(spec(3), 2, [1, 2, 3], () => ({ ...SMALL, writeBytesPerS: 0.55 * MIB })),
    events: {
      12: (cluster) => {
        for (const range of cluster.ranges.values()) range.writeBytesPerS = 0;
      },
    },
    operatorsMax: 3,
    settlesInS: QUIET_S + 60,
    stillS: HOUR,
    // Together they come to 15.2 MiB, and stay there: merged once the quiet time after that is over.
    problems: (cluster) => count(cluster, 1, { splits: 0, merges: 1 }),
  },
  {
    name: 'a range that grows all the time is split again and again, and nothing of it is merged',
    cluster: () => together(spec(3), 1, [1, 2, 3], () => ({ ...SMALL, writeBytesPerS: 0.5 * MIB })),
    events: {
      900: (cluster) => {
        for (const range of cluster.ranges.values()) range.writeBytesPerS = 0;
      },
    },
    operatorsMax: 40,
    settlesInS: 1_100,
    stillS: HOUR,
    problems: ({ merges, splits }) => (merges > 0 || splits < 5 ? [`${splits} splits, ${merges} merges`] : []),
  },
  {
    name: 'what has too many older versions is refused, and tried more and more rarely',
    cluster: () => together(spec(3), 2, [1, 2, 3], () => ({ ...SMALL, olderBytes: 20 * MIB })),
    operatorsMax: 2 + 7,
    settlesInS: 2 * HOUR,
    stillS: 0,
    problems: (cluster) => count(cluster, 2, { splits: 0, merges: 0 }),
  },
  {
    name: 'nothing is merged while a node of it is down',
    cluster: () => {
      const cluster = together(spec(3), 4, [1, 2, 3], () => SMALL);
      cluster.kill(3);
      return cluster;
    },
    operatorsMax: 6,
    settlesInS: 120,
    stillS: HOUR,
    problems: (cluster) => count(cluster, 4, { splits: 0, merges: 0 }),
  },
];
