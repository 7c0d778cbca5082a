/** Options of a node about ranges: which there are at first, and the first values of the settings about them. */
import { int, list, type OptionType } from '@remora/base';
import { RANGE_SETTINGS } from '@remora/master';

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
  ...RANGE_SETTINGS,
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
