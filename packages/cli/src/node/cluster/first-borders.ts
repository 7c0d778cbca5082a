import { compareBytes } from '@remora/base';
import { kvRoutingKey } from '@remora/protocol';
import type { NodeOptions } from '../../node-options.ts';
import { keyOfOption } from '../../range-options.ts';

/** The routing keys at which the ranges of a new cluster begin, except the first one; in order. */
export function firstBorders({ preSplit, preSplitCount }: NodeOptions): readonly Buffer[] {
  const named = preSplit.flatMap((text) => keyOfOption(text) ?? []);
  const keys = named.length > 0 ? named : equalParts(preSplitCount).map((key) => kvRoutingKey(key));
  const sorted = [...keys].sort(compareBytes);
  return sorted.filter((key, i) => i === 0 || !key.equals(sorted[i - 1] ?? key));
}

/** Divides the values of the keys' first two bytes equally. */
function equalParts(count: number): readonly Buffer[] {
  return Array.from({ length: count - 1 }, (_, i) => {
    const key = Buffer.alloc(2);
    key.writeUInt16BE(Math.floor(((i + 1) * 0x1_0000) / count));
    return key;
  });
}
