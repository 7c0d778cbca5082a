/** Where ranges begin and end: routing keys, whose first byte names the key space, as people and programs read them. */
import { jsonBytes } from '@remora/base';
import { KV_SPACE, LEASE_SPACE, LOCK_SPACE } from '@remora/protocol';
import { printable } from './bytes-text.ts';

const SPACES: ReadonlyMap<number, string> = new Map([
  [LEASE_SPACE, 'lease'],
  [LOCK_SPACE, 'lock'],
  [KV_SPACE, 'key'],
]);

/** `key:orders/`, or `-` for no bound. */
export function boundText(bound: Uint8Array): string {
  const [first] = bound;
  if (first === undefined) return '-';
  const space = SPACES.get(first);
  if (space === undefined) return `0x${Buffer.from(bound).toString('hex')}`;
  const rest = bound.subarray(1);
  return `${space}:${space === 'lease' ? Buffer.from(rest).toString('hex') : printable(rest)}`;
}

/** Null for no bound. */
export function jsonBound(bound: Uint8Array): { readonly space: string; readonly key: unknown } | null {
  const [first] = bound;
  if (first === undefined) return null;
  return { space: SPACES.get(first) ?? String(first), key: jsonBytes(bound.subarray(1)) };
}
