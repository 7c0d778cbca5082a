/** Options of a node about ranges: when they are split, and which there are at first. */
import { bool, bytes, durationMs, int } from '@remora/base';
import { SPLIT_SIZES } from '@remora/dataserver';

/** A range is split into halves: smaller ones than this would be more trouble than they are worth, even in tests. */
const SIZE_MIN = 2 ** 14;
const SIZE_MAX = 2 ** 40;

const group = 'Ranges';

export const rangeOptions = {
  autoSplit: {
    type: bool(),
    default: false,
    desc: 'Split ranges that have grown large or hot. The same on all nodes. From the first split on, the cluster writes only while it has a master.',
    group,
  },
  splitCheckSize: {
    type: bytes({ min: SIZE_MIN, max: SIZE_MAX }),
    default: SPLIT_SIZES.checkBytes,
    desc: 'From this size on a range is measured by reading it, in the background. About half of --split-size.',
    group,
  },
  splitSize: {
    type: bytes({ min: SIZE_MIN, max: SIZE_MAX }),
    default: SPLIT_SIZES.splitBytes,
    desc: 'At this size a range is split, with all versions of its keys. Smaller ranges move faster; each costs memory and messages.',
    group,
  },
  rangeSizeMax: {
    type: bytes({ min: SIZE_MIN, max: SIZE_MAX }),
    default: SPLIT_SIZES.maxBytes,
    desc: 'A range above this size is warned of in the log: it should have been split.',
    group,
  },
  splitRequestsPerSecond: {
    type: int({ min: 0, max: 10_000_000 }),
    default: 10_000,
    desc: 'A range with more requests than this is split where they divide; 0: however many. Keep it far above what a range has on average.',
    group,
  },
  splitBytesPerSecond: {
    type: bytes({ min: 0, max: SIZE_MAX }),
    default: 32 * 2 ** 20,
    desc: 'The same for bytes read and written.',
    group,
  },
  splitLoadTime: {
    type: durationMs({ min: 1_000, max: 3_600_000 }),
    default: 30_000,
    desc: 'For how long a range must be so hot before it is split.',
    group,
  },
} as const;
