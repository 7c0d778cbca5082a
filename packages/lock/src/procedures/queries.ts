/**
 * Reads of the lock layer. A query sees one consistent state of one range; the gateway combines a list over several
 * ranges, range by range, with `after`.
 *
 * Q1. The work is bounded by the size of the answer: a list reads one head for each lock and its first waiters, never a
 *     whole queue. Waiters whose wait is over are skipped, up to QUEUE_PAGES_MAX times as many as are asked for.
 */

import { asBuffer, type Bytes, compareBytes, keyAfter, prefixEnd, type Span, unreachable } from '@remora/base';
import { sameOwner } from '../identity.ts';
import { LIST_LIMIT_MAX, LIST_OWNERS_MAX, SEARCH_LOOKS_MAX, SHOW_OWNERS_MAX } from '../limits.ts';
import type { LockView } from '../lock-view.ts';
import { publicOwner, stateOfHolder } from '../public-owner.ts';
import { decodeBarrierWaiter } from '../records/barrier-waiter-record.ts';
import { headKey, LockKeys, lockOfKey, lockSpan, namespaceSpan, namespacesSpan } from '../records/keys.ts';
import { forcedRelease, keptData } from '../records/persisted-rows.ts';
import { decodeHead, type Head, type Hold, positionOf } from '../records/records.ts';
import { liveRevocation } from '../records/revocation-row.ts';
import { decodeOwner, decodeWaiter, shareAt, type WaiterRecord } from '../records/row-records.ts';
import type {
  HolderState,
  LockId,
  LockQuery,
  LockQueryResult,
  LockResult,
  LockState,
  Owner,
  Revocation,
  SearchedKind,
  Waiter,
} from '../types.ts';
import { byGrant } from './events.ts';

type ListQuery = Extract<LockQuery, { readonly type: 'list' }>;

/** The part of a view that queries use. */
export type LockReadView = Pick<LockView, 'get' | 'scan' | 'timeMs'>;

/** Q1. */
const QUEUE_PAGES_MAX = 10;

/** Answers one query. The caller has made sure that the view is current (ReadIndex). */
export function queryLocks(view: LockReadView, query: LockQuery): LockQueryResult {
  switch (query.type) {
    case 'show':
      return { type: 'show', state: show(view, query) };
    case 'list':
      return list(view, query);
    case 'search':
      return search(view, query);
    case 'namespaces':
      return namespaces(view, query);
    case 'check':
      return { type: 'check', current: query.checks.map(({ lock, version }) => isCurrent(view, lock, version)) };
    default:
      return unreachable(query);
  }
}

/** Whether a grant of `version` still holds the lock. */
export function isCurrent(view: Pick<LockView, 'get' | 'scan'>, lock: LockId, version: number): boolean {
  const bytes = view.get(headKey(lock));
  if (bytes === undefined) return false;
  const { hold, sharers, delayed } = decodeHead(bytes);
  if (sharers === 0) return hold?.holder.version === version && !hold.delayed;
  const keys = new LockKeys(lock);
  const { start, end } = keys.sharesOf(version);
  // Among one more than there are delayed holds, one is not delayed.
  return view.scan(start, end, delayed + 1).some((row) => delayed === 0 || !shareAt(keys, row).delayed);
}

/** How many owners wait for a lock, including those whose wait is over until a hand-over removes them. */
export function waitersOf(view: Pick<LockView, 'get'>, lock: LockId): number {
  const bytes = view.get(headKey(lock));
  return bytes === undefined ? 0 : decodeHead(bytes).waiters;
}

/** News for a holder about its grant. */
export type GrantNews = 'ended' | Revocation;

/** The news for a holder: its grant has ended, or there is a revocation after the one that it knows (`known`). */
export function grantNews(
  view: LockReadView,
  lock: LockId,
  { version, known }: { readonly version: number; readonly known: number | undefined },
): GrantNews | undefined {
  if (!isCurrent(view, lock, version)) return 'ended';
  const bytes = known === undefined ? undefined : view.get(headKey(lock));
  if (bytes === undefined || known === undefined) return undefined;
  const revocation = liveRevocation(view, new LockKeys(lock), decodeHead(bytes));
  if (revocation === undefined || version > revocation.version) return undefined;
  return revocation.revision > known ? revocation : undefined;
}

/**
 * The status of an owner: `granted`, `queued` (also while it waits for an upgrade), or `refused` when it neither holds
 * the lock nor waits for it. For a waiter whose open call was lost: this is what the call would have been answered.
 */
export function ownerStatus(
  view: Pick<LockView, 'get' | 'sessionAlive'>,
  lock: LockId,
  owner: Owner,
): Extract<LockResult, { readonly type: 'granted' | 'queued' | 'refused' }> {
  const keys = new LockKeys(lock);
  const bytes = view.get(keys.head);
  const head = bytes === undefined ? undefined : decodeHead(bytes);
  const status = head === undefined ? undefined : statusIn(view, { keys, head }, owner);
  if (status !== undefined) return status;
  if (!view.sessionAlive(owner.session)) {
    return { type: 'refused', code: 'SESSION_EXPIRED', message: 'the session has ended' };
  }
  return { type: 'refused', code: 'LOCK_CANCELED', message: 'the owner neither holds the lock nor waits for it' };
}

/** Undefined: the owner neither holds the lock nor waits for it. */
function statusIn(
  view: Pick<LockView, 'get'>,
  { keys, head }: { readonly keys: LockKeys; readonly head: Head },
  owner: Owner,
): Extract<LockResult, { readonly type: 'granted' | 'queued' }> | undefined {
  const row = head.passing + head.passed === 0 ? undefined : view.get(keys.barrierWaiter(owner));
  const waiter = row && decodeBarrierWaiter(row);
  const waiting = { type: 'queued', position: head.passing } as const;
  if (waiter !== undefined && waiter.parties > 0) return waiting; // B2: it has its share, and is not in yet.
  const holding = holdingIn(view, { keys, head }, owner);
  if (holding !== undefined || waiter === undefined) return holding;
  const { passedVersion: version } = waiter;
  return version > 0 ? { type: 'granted', version, depth: 0, lockTimeMs: 0 } : waiting;
}

/** The same for an owner that does not wait at a barrier. */
function holdingIn(
  view: Pick<LockView, 'get'>,
  { keys, head }: { readonly keys: LockKeys; readonly head: Head },
  owner: Owner,
): Extract<LockResult, { readonly type: 'granted' | 'queued' }> | undefined {
  const { hold } = head;
  const grantedTo = (current: Hold) => grantOf(current, keptData(view, keys, head));
  if (hold !== undefined && sameOwner(hold.holder.owner, owner)) return hold.delayed ? undefined : grantedTo(hold);
  const row = head.waiters === 0 && head.sharers === 0 ? undefined : view.get(keys.owner(owner));
  if (row === undefined) return undefined;
  const { sequence, shareVersion } = decodeOwner(row);
  if (sequence !== 0) return { type: 'queued', position: positionOf(head, sequence) };
  if (shareVersion === 0) return undefined;
  const upgrade = head.upgrading ? view.get(keys.upgrade()) : undefined;
  if (upgrade !== undefined && sameOwner(decodeWaiter(upgrade).owner, owner)) return { type: 'queued', position: 1 };
  const key = keys.share(owner, shareVersion);
  const value = view.get(key);
  const share = value && shareAt(keys, { key, value });
  return share === undefined || share.delayed ? undefined : grantedTo(share);
}

function grantOf({ holder }: Hold, kept: Bytes): Extract<LockResult, { readonly type: 'granted' }> {
  const { version, depth, lockTimeMs } = holder;
  return { type: 'granted', version, depth, lockTimeMs, ...(kept.length > 0 ? { keptData: kept } : {}) };
}

function show(view: LockReadView, query: Extract<LockQuery, { readonly type: 'show' }>): LockState | undefined {
  const { lock } = query;
  const bytes = view.get(headKey(lock));
  return bytes === undefined
    ? undefined
    : stateOf(view, { lock, head: decodeHead(bytes), ownersMax: SHOW_OWNERS_MAX, query });
}

function list(view: LockReadView, query: Extract<LockQuery, { readonly type: 'list' }>): LockQueryResult {
  const { start, end } = listedSpan(query);
  const limit = Math.min(query.limit, LIST_LIMIT_MAX);
  const locks: LockState[] = [];
  for (const row of heads(view, start, end)) {
    const head = decodeHead(row.value);
    if (isOver(head)) continue;
    if (locks.length === limit) return { type: 'list', locks, more: true };
    const state = stateOf(view, { lock: lockOfKey(row.key), head, ownersMax: LIST_OWNERS_MAX, query });
    if (state !== undefined) locks.push(state);
  }
  return { type: 'list', locks, more: false };
}

/** Looks at names before heads, and at heads before owners. */
function search(view: LockReadView, query: Extract<LockQuery, { readonly type: 'search' }>): LockQueryResult {
  const { start, end } = listedSpan(query);
  const limit = Math.min(query.limit, LIST_LIMIT_MAX);
  const contains = asBuffer(query.contains);
  const locks: LockState[] = [];
  let last: LockId | undefined;
  let looks = 0;
  for (const row of heads(view, start, end)) {
    if (looks++ === SEARCH_LOOKS_MAX || locks.length === limit) return { type: 'search', locks, next: last?.name };
    last = lockOfKey(row.key);
    if (!asBuffer(last.name).includes(contains)) continue;
    const head = decodeHead(row.value);
    if (!isOfKind(head, query.kind)) continue;
    const source = { lock: last, head, ownersMax: LIST_OWNERS_MAX, query: { allKinds: true } } as const;
    const state = stateOf(view, source);
    if (state !== undefined) locks.push(state);
  }
  return { type: 'search', locks, next: undefined };
}

function isOfKind(head: Head, kind: SearchedKind | undefined): boolean {
  if (kind === undefined) return true;
  return kind === 'barrier' ? head.passing > 0 : kindOf(head) === kind;
}

function kindOf({ capacity, sharers }: Head): LockState['kind'] {
  return capacity > 0 ? 'semaphore' : sharers > 0 ? 'shared' : 'exclusive';
}

/** Skips from the first lock of a namespace to the end of the namespace. */
function namespaces(view: LockReadView, query: Extract<LockQuery, { readonly type: 'namespaces' }>): LockQueryResult {
  const { end } = namespacesSpan('');
  const limit = Math.min(query.limit, LIST_LIMIT_MAX);
  const found: string[] = [];
  for (let { start } = namespacesSpan(query.after); compareBytes(start, end) < 0; ) {
    const row = view.scan(start, end, 1)[0];
    if (row === undefined) break;
    if (found.length === limit) return { type: 'namespaces', namespaces: found, more: true };
    const { namespace } = lockOfKey(row.key);
    found.push(namespace);
    ({ start } = namespacesSpan(namespace));
  }
  return { type: 'namespaces', namespaces: found, more: false };
}

/** The part of the namespace that a query lists. */
function listedSpan({ namespace, prefix, after }: Pick<ListQuery, 'namespace' | 'prefix' | 'after'>): Span {
  const { start, end } = namespaceSpan(namespace, prefix);
  if (after.length === 0) return { start, end };
  const next = lockSpan({ namespace, name: after }).end;
  return { start: compareBytes(next, start) > 0 ? next : start, end };
}

/** K3. The heads of the locks between two places, in order; `start` is not inside a lock. */
function* heads(
  view: LockReadView,
  start: Bytes,
  end: Bytes,
): Generator<{ readonly key: Bytes; readonly value: Bytes }> {
  for (let from = start; compareBytes(from, end) < 0; ) {
    const row = view.scan(from, end, 1)[0];
    if (row === undefined) return;
    yield row;
    from = afterLock(row.key);
  }
}

function afterLock(key: Bytes): Bytes {
  return prefixEnd(key.subarray(0, -1));
}

interface Source {
  readonly lock: LockId;
  readonly head: Head;
  /** The most holders, and the most waiters, to return. */
  readonly ownersMax: number;
  readonly query: { readonly allKinds?: true };
}

/** Whether only marks are left of the lock. */
function isOver({ hold, sharers, capacity, keepsData, forcedOnRecord }: Head): boolean {
  return hold === undefined && sharers === 0 && capacity === 0 && !keepsData && !forcedOnRecord;
}

/** Undefined for a lock of which only marks are left. */
function stateOf(view: LockReadView, source: Source): LockState | undefined {
  const { lock, head, query } = source;
  if (isOver(head)) return undefined;
  const keys = new LockKeys(lock);
  const holders = head.hold === undefined ? firstSharers(view, keys, source) : [stateOfHolder(head.hold)];
  const waiters = someoneWaits(head) ? firstWaiters(view, keys, source) : [];
  const { permits, capacity } = head;
  const revocation = liveRevocation(view, keys, head);
  const state: LockState = {
    lock,
    kind: kindOf(head),
    holders,
    holderCount: head.hold === undefined ? head.sharers : 1,
    waiters,
    waiterCount: head.waiters + (head.upgrading ? 1 : 0),
    permits,
    capacity,
    keptData: head.keepsData ? keptData(view, keys, head) : undefined,
    forced: forcedRelease(view, keys, head),
    ...(revocation === undefined ? {} : { revocation }),
    passing: head.passing,
  };
  return query.allKinds ? state : asExclusive(state);
}

/** The state for callers that know only exclusive locks. */
function asExclusive({ revocation: _, ...state }: LockState): LockState {
  const alone = { mode: 'exclusive', permits: 0 } as const;
  return {
    ...state,
    kind: 'exclusive',
    holders: state.holders.map((holder) => ({ ...holder, ...alone, keepsData: false, delayMs: 0 })),
    holderCount: state.holders.length,
    waiters: state.waiters.map((waiter) => ({ ...waiter, ...alone })),
    permits: 0,
    capacity: 0,
    keptData: undefined,
    forced: undefined,
    passing: 0,
  };
}

function someoneWaits({ waiters, upgrading }: Head): boolean {
  return waiters > 0 || upgrading;
}

function firstSharers(view: LockReadView, keys: LockKeys, { head, ownersMax }: Source): readonly HolderState[] {
  if (head.sharers === 0) return [];
  const { start, end } = keys.shares();
  return view
    .scan(start, end, ownersMax)
    .map((row) => stateOfHolder(shareAt(keys, row)))
    .sort(byGrant);
}

function firstWaiters(view: LockReadView, keys: LockKeys, { head, ownersMax }: Source): readonly Waiter[] {
  const waiters: Waiter[] = [];
  const add = ({ owner, waitUntilMs, sinceMs, mode, permits }: WaiterRecord): void => {
    if (waitUntilMs > 0 && view.timeMs > waitUntilMs) return;
    waiters.push({ owner: publicOwner(owner), position: waiters.length + 1, sinceMs, mode, permits });
  };
  const upgrade = head.upgrading ? view.get(keys.upgrade()) : undefined;
  if (upgrade !== undefined) add(decodeWaiter(upgrade));
  if (head.waiters === 0) return waiters;
  let start: Bytes = keys.waiter(head.firstSequence);
  for (let page = 0; page < QUEUE_PAGES_MAX && waiters.length < ownersMax; page++) {
    const rows = view.scan(start, keys.queueEnd(), ownersMax);
    for (const row of rows) if (waiters.length < ownersMax) add(decodeWaiter(row.value));
    const last = rows.at(-1);
    if (last === undefined || rows.length < ownersMax) break;
    start = keyAfter(last.key);
  }
  return waiters;
}
