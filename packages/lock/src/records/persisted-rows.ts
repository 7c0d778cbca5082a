/**
 * What holders leave with a lock: rows that stay while nobody holds it. The head says which of them exist, so a lock
 * without them costs nothing.
 */
import { type Bytes, EMPTY_BYTES, InvariantError } from '@remora/base';
import type { LockView } from '../lock-view.ts';
import type { ForcedRelease } from '../types.ts';
import type { LockKeys } from './keys.ts';
import { decodeForced, decodeKept, encodeForced, encodeKept } from './persisted-rows-codec.ts';
import type { Head } from './records.ts';

/** The kept data; empty if there are none. */
export function keptData(view: Pick<LockView, 'get'>, keys: LockKeys, head: Pick<Head, 'keepsData'>): Bytes {
  if (!head.keepsData) return EMPTY_BYTES;
  return decodeKept(announced(view.get(keys.kept())));
}

/** Replaces the kept data; empty deletes them. Returns true if the head changed. */
export function keepData(view: LockView, keys: LockKeys, { head, data }: { head: Head; data: Bytes }): boolean {
  const before = head.keepsData;
  head.keepsData = data.length > 0;
  if (head.keepsData) view.put(keys.kept(), encodeKept(data));
  else if (before) view.delete(keys.kept());
  return before !== head.keepsData;
}

/** The record of the last forced release; undefined if there is none. */
export function forcedRelease(
  view: Pick<LockView, 'get'>,
  keys: LockKeys,
  head: Pick<Head, 'forcedOnRecord'>,
): ForcedRelease | undefined {
  return head.forcedOnRecord ? decodeForced(announced(view.get(keys.forced()))) : undefined;
}

/** Replaces the record of a forced release; undefined deletes it. Returns true if the head changed. */
export function recordForced(
  view: LockView,
  keys: LockKeys,
  { head, forced }: { head: Head; forced: ForcedRelease | undefined },
): boolean {
  const before = head.forcedOnRecord;
  head.forcedOnRecord = forced !== undefined;
  if (forced !== undefined) view.put(keys.forced(), encodeForced(forced));
  else if (before) view.delete(keys.forced());
  return before !== head.forcedOnRecord;
}

function announced(row: Bytes | undefined): Bytes {
  if (row === undefined) throw new InvariantError('W1: the head says which rows there are');
  return row;
}
