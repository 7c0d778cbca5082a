/** Random steps of the KV API, and their parts. */
import type { Draw } from './draw.ts';
import { KEYS, LEASE_SLOTS, prefixEnd } from './keys.ts';
import type { DeleteStep, Lease, PutStep, RangeStep, Revision, Span } from './requests.ts';

/** The largest number that fits into a field. */
export const HUGE = 0x7fffffffffffffffn;
const LARGE_VALUE_BYTES = 3_000;

export function drawKey(draw: Draw): string {
  return draw.of(KEYS);
}

export function drawSpan(draw: Draw): Span {
  const key = drawKey(draw);
  const [low = '', high = ''] = [key, drawKey(draw)].sort();
  return draw.weighted<Span>([
    [35, { key }],
    [25, { key: low, end: high }],
    [10, { key, end: '\0' }],
    [8, { key: '\0', end: '\0' }],
    [8, { key, end: prefixEnd(key) }],
    [4, { key, end: `${key}\0` }],
    [4, { key: high, end: low }],
    [1, { key: '', end: '\0' }],
    [1, { key: '' }],
  ]);
}

export function drawRevision(draw: Draw): Revision {
  return draw.weighted<Revision>([
    [60, { ago: draw.int(20) }],
    [20, { ago: draw.int(200) }],
    [6, { ago: 100_000 }],
    [4, { ahead: 1_000_000_000 }],
    [3, { raw: 0n }],
    [3, { raw: -1n }],
    [2, { raw: HUGE }],
    [1, { raw: -HUGE - 1n }],
  ]);
}

export function drawLease(draw: Draw): Lease {
  if (draw.percent(4)) return { raw: draw.of([4_711n, HUGE, -4_711n]) };
  return { slot: draw.int(LEASE_SLOTS) };
}

export function drawValue(draw: Draw): string {
  return draw.weighted([
    [60, `v${draw.int(6)}`],
    [10, ''],
    [10, '\0\xff'],
    [3, 'x'.repeat(LARGE_VALUE_BYTES)],
  ]);
}

export function drawRange(draw: Draw): RangeStep {
  return {
    do: 'range',
    ...drawSpan(draw),
    ...(draw.percent(30) && { limit: draw.of([1n, 2n, 3n, 5n, 10n, 1_000n, HUGE, -1n, -HUGE - 1n]) }),
    ...(draw.percent(30) && { revision: drawRevision(draw) }),
    ...(draw.percent(35) && { sortOrder: draw.int(3) }),
    ...(draw.percent(35) && { sortTarget: draw.int(5) }),
    ...(draw.percent(10) && { serializable: true }),
    ...(draw.percent(10) && { keysOnly: true }),
    ...(draw.percent(10) && { countOnly: true }),
    ...(draw.percent(6) && { minMod: drawRevision(draw) }),
    ...(draw.percent(6) && { maxMod: drawRevision(draw) }),
    ...(draw.percent(6) && { minCreate: drawRevision(draw) }),
    ...(draw.percent(6) && { maxCreate: drawRevision(draw) }),
  };
}

export function drawPut(draw: Draw): PutStep {
  const ignoreValue = draw.percent(8);
  const ignoreLease = draw.percent(8);
  return {
    do: 'put',
    key: draw.percent(1) ? '' : drawKey(draw),
    value: ignoreValue && draw.percent(90) ? '' : drawValue(draw),
    ...(draw.percent(ignoreLease ? 5 : 25) && { lease: drawLease(draw) }),
    ...(draw.percent(30) && { prevKv: true }),
    ...(ignoreValue && { ignoreValue }),
    ...(ignoreLease && { ignoreLease }),
  };
}

export function drawDelete(draw: Draw): DeleteStep {
  return { do: 'delete', ...drawSpan(draw), ...(draw.percent(50) && { prevKv: true }) };
}
