/** Options of a node about ranges: when they are split, and which there are at first. */
import { bool, bytes, durationMs, int, list, type OptionType } from '@remora/base';
import { SPLIT_SIZES } from '@remora/dataserver';

/** A range is split into halves: smaller ones than this would be more trouble than they are worth, even in tests. */
const SIZE_MIN = 2 ** 14;
const SIZE_MAX = 2 ** 40;

const PRE_SPLIT_MAX = 1_000;

const group = 'Ranges';

export const rangeOptions = {
  preSplit: {
    type: list(key(), { maxLength: PRE_SPLIT_MAX }),
    default: [],
    desc: 'Keys at which the first ranges of a new cluster begin, beside the one before all keys: text, or hex behind 0x. The same on all founding members; it means nothing later.',
    group,
  },
  preSplitCount: {
    type: int({ min: 1, max: PRE_SPLIT_MAX }),
    default: 1,
    desc: 'How many ranges a new cluster begins with, each with an equal part of all keys: for keys that begin with random bytes. Instead of --pre-split.',
    group,
  },
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

/** Stays text, as options are frozen and bytes cannot be. */
function key(): OptionType<string> {
  const expected = 'a key as text, or as pairs of hex digits behind 0x';
  const parse = (text: string) =>
    (keyOfOption(text)?.length ?? 0) > 0 ? ({ ok: true, value: text } as const) : ({ ok: false, expected } as const);
  return {
    placeholder: '<key>',
    parse,
    fromFile: (value) => (typeof value === 'string' ? parse(value) : { ok: false, expected }),
    show: (text) => text,
  };
}

/** Undefined for hex that is none. */
export function keyOfOption(text: string): Buffer | undefined {
  if (!text.startsWith('0x')) return Buffer.from(text);
  return /^0x([0-9a-fA-F]{2})*$/.test(text) ? Buffer.from(text.slice(2), 'hex') : undefined;
}
