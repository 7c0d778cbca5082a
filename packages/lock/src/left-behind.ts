/**
 * What holders leave with a lock: rows that stay while nobody holds it, each announced by the head, so that a lock
 * without them pays nothing.
 */
import { type Bytes, EMPTY_BYTES, InvariantError } from '@remora/base';
import type { LockKeys } from './keys.ts';
import { decodeKept, encodeKept, type Head } from './records.ts';
import type { LockView } from './types.ts';

/** The data that was kept; empty: none. */
export function keptData(view: Pick<LockView, 'get'>, keys: LockKeys, head: Pick<Head, 'keepsData'>): Bytes {
  if (!head.keepsData) return EMPTY_BYTES;
  const row = view.get(keys.kept());
  if (row === undefined) throw new InvariantError('W1: the head says which rows there are');
  return decodeKept(row);
}

/** Puts data in the place of what was kept; no bytes: nothing is kept any more. Gives whether the head has changed. */
export function keepData(view: LockView, keys: LockKeys, { head, data }: { head: Head; data: Bytes }): boolean {
  const before = head.keepsData;
  head.keepsData = data.length > 0;
  if (head.keepsData) view.put(keys.kept(), encodeKept(data));
  else if (before) view.delete(keys.kept());
  return before !== head.keepsData;
}
