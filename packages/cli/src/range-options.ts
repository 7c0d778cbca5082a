/** Options of a node about ranges: the first ranges, and the defaults of the settings about ranges. */
import { int, list, type OptionType } from '@remora/base';
import { RANGE_SETTINGS } from '@remora/master';
import { kvRoutingKey, readRoutingKey } from '@remora/protocol';

const PRE_SPLIT_MAX = 10_000;

const group = 'Ranges';

export const rangeOptions = {
  preSplit: {
    type: list(key(), { maxLength: PRE_SPLIT_MAX }),
    default: [],
    desc: 'Keys at which a new cluster splits its key space into ranges: text, hex after 0x, or as "admin ranges ls" prints them, such as lock:orders/. Identical on all founding members; has no effect on an existing cluster.',
    group,
  },
  preSplitCount: {
    type: int({ min: 1, max: PRE_SPLIT_MAX }),
    default: 1,
    desc: 'Number of equal ranges into which a new cluster splits its key space; for keys that start with random bytes. Cannot be combined with --pre-split.',
    group,
  },
  ...RANGE_SETTINGS,
} as const;

/** Stays text, because options are frozen and bytes cannot be. */
function key(): OptionType<string> {
  const expected = 'a key as text, as pairs of hex digits after 0x, or as "ranges ls" prints it, such as lock:orders/';
  const parse = (text: string) =>
    keyOfOption(text) === undefined ? ({ ok: false, expected } as const) : ({ ok: true, value: text } as const);
  return {
    placeholder: '<key>',
    parse,
    fromFile: (value) => (typeof value === 'string' ? parse(value) : { ok: false, expected }),
    show: (text) => text,
  };
}

/** The routing key of the text; undefined if no range can begin there. */
export function keyOfOption(text: string): Buffer | undefined {
  const read = readRoutingKey(text);
  if (read !== undefined) return read.ok && read.key.length > 0 && !text.startsWith('raw:') ? read.key : undefined;
  const isHex = text.startsWith('0x');
  if (isHex && !/^0x([0-9a-fA-F]{2})*$/.test(text)) return undefined;
  const key = isHex ? Buffer.from(text.slice(2), 'hex') : Buffer.from(text);
  return key.length === 0 ? undefined : kvRoutingKey(key);
}
