/** What a session has in a lock. */

import { sameSession } from '../identity.ts';
import type { LockView } from '../lock-view.ts';
import { ownerId } from '../public-owner.ts';
import { headKey, LockKeys } from '../records/keys.ts';
import { decodeHead, type Head, type Hold, positionOf } from '../records/records.ts';
import { decodeOwner, decodeWaiter, shareAt } from '../records/row-records.ts';
import type { LockId, SessionLock, SessionRef } from '../types.ts';

type ReadView = Pick<LockView, 'get' | 'scan'>;

/** The most owners of one session in one lock that are returned. */
const OWNERS_MAX = 100;

/** The holds of a session in a lock and its places in the queue. Reads no rows of other sessions. */
export function sessionLocks(view: ReadView, lock: LockId, session: SessionRef): readonly SessionLock[] {
  const bytes = view.get(headKey(lock));
  if (bytes === undefined) return [];
  const head = decodeHead(bytes);
  const keys = new LockKeys(lock);
  const found: SessionLock[] = [];
  const { hold } = head;
  if (hold !== undefined && sameSession(hold.holder.owner.session, session)) found.push(held(lock, hold));
  if (head.sharers === 0 && head.waiters === 0 && !head.upgrading) return found;
  const { start, end } = keys.session(session);
  for (const { key, value } of view.scan(start, end, OWNERS_MAX)) {
    const { sequence, shareVersion } = decodeOwner(value);
    const owner = keys.ownerOf(key);
    if (shareVersion !== 0) {
      const share = keys.share(owner, shareVersion);
      const row = view.get(share);
      if (row !== undefined) found.push(held(lock, shareAt(keys, { key: share, value: row })));
    }
    if (sequence !== 0) found.push(...waiting(view, { lock, keys, head, sequence }));
  }
  const upgrade = head.upgrading ? view.get(keys.upgrade()) : undefined;
  if (upgrade === undefined) return found;
  const { owner, permits, sinceMs } = decodeWaiter(upgrade);
  const waits = {
    lock,
    ownerId: ownerId(owner.token),
    mode: 'upgrade',
    permits,
    version: 0,
    depth: 0,
    position: 1,
    sinceMs,
  } as const;
  return sameSession(owner.session, session) ? [...found, waits] : found;
}

function held(lock: LockId, { holder, mode, permits }: Hold): SessionLock {
  const { owner, version, depth, lockTimeMs } = holder;
  return { lock, ownerId: ownerId(owner.token), mode, permits, version, depth, position: 0, sinceMs: lockTimeMs };
}

function waiting(
  view: ReadView,
  at: { readonly lock: LockId; readonly keys: LockKeys; readonly head: Head; readonly sequence: number },
): readonly SessionLock[] {
  const { lock, keys, head, sequence } = at;
  const row = view.get(keys.waiter(sequence));
  if (row === undefined) return [];
  const { owner, mode, permits, sinceMs } = decodeWaiter(row);
  const position = positionOf(head, sequence);
  return [{ lock, ownerId: ownerId(owner.token), mode, permits, version: 0, depth: 0, position, sinceMs }];
}
