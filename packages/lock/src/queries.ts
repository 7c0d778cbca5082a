/**
 * Reads of the lock layer. They see one consistent state of one range; a list over several ranges is put together
 * above, range by range, with `after`.
 *
 * Q1. Work is bounded by the answer: a list reads one head per lock and the first few waiters of each, never a queue.
 */
import { type Bytes, compareBytes, prefixEnd, unreachable } from '@remora/base';
import { headKey, LockKeys, lockOfKey, lockSpan, namespaceSpan } from './keys.ts';
import { LIST_LIMIT_MAX, LIST_WAITERS_MAX, SHOW_WAITERS_MAX } from './limits.ts';
import { sameOwner } from './lock-rows.ts';
import { decodeHead, decodeOwner, decodeWaiter, type Head } from './records.ts';
import type { LockId, LockQuery, LockQueryResult, LockResult, LockState, LockView, Owner, Waiter } from './types.ts';

/** The part of a view that queries use. */
export type LockReadView = Pick<LockView, 'get' | 'scan' | 'timeMs'>;

/** Answers one query. The caller has made sure that the view is current (ReadIndex). */
export function queryLocks(view: LockReadView, query: LockQuery): LockQueryResult {
  switch (query.type) {
    case 'show':
      return { type: 'show', state: show(view, query.lock) };
    case 'list':
      return list(view, query);
    case 'check':
      return { type: 'check', current: query.checks.map(({ lock, version }) => isCurrent(view, lock, version)) };
    default:
      return unreachable(query);
  }
}

/** Whether `version` is still the grant that holds the lock. */
export function isCurrent(view: Pick<LockView, 'get'>, lock: LockId, version: number): boolean {
  const bytes = view.get(headKey(lock));
  return bytes !== undefined && decodeHead(bytes).hold?.holder.version === version;
}

/**
 * Where an owner stands: `granted`, `queued`, or `refused` when it neither holds nor waits. For a waiter whose open
 * call was lost: the queue itself says what the call would have been answered.
 */
export function ownerStatus(
  view: Pick<LockView, 'get' | 'sessionAlive'>,
  lock: LockId,
  owner: Owner,
): Extract<LockResult, { readonly type: 'granted' | 'queued' | 'refused' }> {
  const keys = new LockKeys(lock);
  const bytes = view.get(keys.head);
  const head = bytes === undefined ? undefined : decodeHead(bytes);
  const holder = head?.hold?.holder;
  if (holder !== undefined && sameOwner(holder.owner, owner)) {
    return { type: 'granted', version: holder.version, depth: holder.depth, lockTimeMs: holder.lockTimeMs };
  }
  const row = head === undefined || head.waiters === 0 ? undefined : view.get(keys.owner(owner));
  const sequence = row === undefined ? 0 : decodeOwner(row).sequence;
  if (head !== undefined && sequence !== 0) {
    return { type: 'queued', position: Math.min(sequence - head.firstSequence + 1, head.waiters) };
  }
  if (!view.sessionAlive(owner.session)) {
    return { type: 'refused', code: 'SESSION_EXPIRED', message: 'the session has ended' };
  }
  return { type: 'refused', code: 'LOCK_CANCELED', message: 'the owner neither holds the lock nor waits for it' };
}

function show(view: LockReadView, lock: LockId): LockState | undefined {
  const bytes = view.get(headKey(lock));
  return bytes === undefined
    ? undefined
    : stateOf(view, { lock, head: decodeHead(bytes), waitersMax: SHOW_WAITERS_MAX });
}

function list(view: LockReadView, query: Extract<LockQuery, { readonly type: 'list' }>): LockQueryResult {
  const span = namespaceSpan(query.namespace, query.prefix);
  const limit = Math.min(query.limit, LIST_LIMIT_MAX);
  const locks: LockState[] = [];
  let start = span.start;
  if (query.after.length > 0) {
    const next = lockSpan({ namespace: query.namespace, name: query.after }).end;
    if (compareBytes(next, start) > 0) start = next;
  }
  while (compareBytes(start, span.end) < 0) {
    const row = view.scan(start, span.end, 1)[0]; // K3: the head of the next lock.
    if (row === undefined) break;
    start = afterLock(row.key);
    const head = decodeHead(row.value);
    if (head.hold === undefined) continue;
    if (locks.length === limit) return { type: 'list', locks, more: true };
    const state = stateOf(view, { lock: lockOfKey(row.key), head, waitersMax: LIST_WAITERS_MAX });
    if (state !== undefined) locks.push(state);
  }
  return { type: 'list', locks, more: false };
}

function afterLock(key: Bytes): Bytes {
  return prefixEnd(key.subarray(0, -1));
}

interface Source {
  readonly lock: LockId;
  readonly head: Head;
  readonly waitersMax: number;
}

/** Undefined for a lock of which only marks are left. */
function stateOf(view: LockReadView, { lock, head, waitersMax }: Source): LockState | undefined {
  if (head.hold === undefined) return undefined;
  const waiters = head.waiters === 0 ? [] : firstWaiters(view, { lock, head, waitersMax });
  return { lock, kind: 'exclusive', holders: [head.hold.holder], waiters, waiterCount: head.waiters };
}

function firstWaiters(view: LockReadView, { lock, head, waitersMax }: Source): readonly Waiter[] {
  const keys = new LockKeys(lock);
  const waiters: Waiter[] = [];
  for (const row of view.scan(keys.waiter(head.firstSequence), keys.queueEnd(), waitersMax)) {
    const { owner, waitUntilMs, sinceMs } = decodeWaiter(row.value);
    if (waitUntilMs > 0 && view.timeMs > waitUntilMs) continue;
    waiters.push({ owner, position: waiters.length + 1, sinceMs });
  }
  return waiters;
}
