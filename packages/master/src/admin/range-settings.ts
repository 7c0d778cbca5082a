/**
 * When ranges are split and merged automatically. Nodes have these values as options, which are the defaults of the
 * cluster settings of the same names: a value set for the cluster takes precedence.
 */
import { bool, bytes, durationMs, int, type OptionDefinition, type OptionValues } from '@remora/base';
import type { SplitPolicy } from '@remora/protocol';
import type { MergePolicy } from '../scheduling/settings.ts';

const KIB = 2 ** 10;
const MIB = 2 ** 20;
/** A range is split into halves: smaller ranges than this are not worthwhile, even in tests. */
const SIZE_MIN = 16 * KIB;
const SIZE_MAX = 2 ** 40;

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

const group = 'Ranges';

export const RANGE_SETTINGS = {
  autoSplit: {
    type: bool(),
    default: true,
    desc: 'Split ranges that are large or hot. After the first split, the cluster accepts writes only while it has a master.',
    group,
  },
  splitCheckSize: {
    type: bytes({ min: SIZE_MIN, max: SIZE_MAX }),
    default: 32 * MIB,
    desc: 'Size from which the exact size of a range is measured, by reading it in the background. Set it to about half of split-size.',
    group,
  },
  splitSize: {
    type: bytes({ min: SIZE_MIN, max: SIZE_MAX }),
    default: 64 * MIB,
    desc: 'Size at which a range is split, counting all versions of its keys. Smaller ranges move faster, but each range costs memory and messages.',
    group,
  },
  rangeSizeMax: {
    type: bytes({ min: SIZE_MIN, max: SIZE_MAX }),
    default: 128 * MIB,
    desc: 'Size at which writes to a range are refused until it is split. Writes are slowed down as the range approaches it.',
    group,
  },
  splitRequestsPerSecond: {
    type: int({ min: 0, max: 10_000_000 }),
    default: 10_000,
    desc: 'Load above which a range is split so that its requests divide evenly. 0: never. Keep it far above the average load of a range.',
    group,
  },
  splitBytesPerSecond: {
    type: bytes({ min: 0, max: SIZE_MAX }),
    default: 32 * MIB,
    desc: 'Bytes read and written per second above which a range is split so that they divide evenly. 0: never.',
    group,
  },
  splitLoadTime: {
    type: durationMs({ min: SECOND, max: HOUR }),
    default: 30 * SECOND,
    desc: 'How long a range must exceed these loads before it is split.',
    group,
  },
  autoMerge: {
    type: bool(),
    default: true,
    desc: 'Merge adjacent ranges that are small and quiet.',
    group,
  },
  mergeSizePercent: {
    type: int({ min: 1, max: 50 }),
    default: 25,
    desc: 'Adjacent ranges count as small if their total size is below this percentage of split-size. At 50, they may soon be split again.',
    group,
  },
  mergeQuietTime: {
    type: durationMs({ min: SECOND, max: 7 * 24 * HOUR }),
    default: 10 * MINUTE,
    desc: 'How long adjacent ranges must be small, with less than half of the load at which ranges are split, before they are merged.',
    group,
  },
  mergeChosenBorders: {
    type: bool(),
    default: false,
    desc: 'Also merge at borders that people chose: those from the founding of the cluster, and those of manual splits.',
    group,
  },
} as const satisfies Readonly<Record<string, OptionDefinition<unknown>>>;

export type RangeSettings = OptionValues<typeof RANGE_SETTINGS>;

interface RangeRelation {
  readonly between: readonly (keyof RangeSettings)[];
  holds(values: RangeSettings): boolean;
  readonly must: string;
}

export const RANGE_RELATIONS: readonly RangeRelation[] = [
  {
    between: ['splitSize', 'splitCheckSize'],
    holds: ({ splitSize, splitCheckSize }) => splitSize >= splitCheckSize,
    must: 'be at least split-check-size',
  },
  {
    between: ['rangeSizeMax', 'splitSize'],
    holds: ({ rangeSizeMax, splitSize }) => rangeSizeMax > splitSize,
    must: 'be above split-size',
  },
];

/** The part that scheduling uses. */
export function mergePolicyOf(settings: RangeSettings): MergePolicy {
  const { splitSize, splitRequestsPerSecond, splitBytesPerSecond } = settings;
  return {
    enabled: settings.autoMerge,
    bytesMax: Math.floor((splitSize * settings.mergeSizePercent) / 100),
    quietMs: settings.mergeQuietTime,
    chosenBorders: settings.mergeChosenBorders,
    splits: { bytes: splitSize, requestsPerS: splitRequestsPerSecond, bytesPerS: splitBytesPerSecond },
  };
}

/** The part that nodes use. */
export function splitPolicyOf(settings: RangeSettings): SplitPolicy {
  return {
    automatic: settings.autoSplit,
    sizes: {
      checkBytes: settings.splitCheckSize,
      splitBytes: settings.splitSize,
      maxBytes: settings.rangeSizeMax,
    },
    loads: {
      requestsPerS: settings.splitRequestsPerSecond,
      bytesPerS: settings.splitBytesPerSecond,
      holdMs: settings.splitLoadTime,
    },
  };
}

/** The definitions with other values as defaults. */
export function rangeSettingsFrom(first: Partial<RangeSettings>): typeof RANGE_SETTINGS {
  const definitions = Object.entries(RANGE_SETTINGS).map(([name, definition]) => [name, { ...definition }] as const);
  const values: Readonly<Record<string, unknown>> = first;
  return Object.fromEntries(
    definitions.map(([name, definition]) => [name, { ...definition, default: values[name] ?? definition.default }]),
  ) as unknown as typeof RANGE_SETTINGS;
}
