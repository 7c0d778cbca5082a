/** Lists the locks of a namespace that are in several ranges, range by range. */
import { type Bytes, compareBytes, ServiceError, type Span } from '@remora/base';
import { type LockQuery, type LockState, lockSpan, namespaceSpan } from '@remora/lock';
import type { Query, RangeReply } from '@remora/protocol';
import type { Route } from '../routes/route-map.ts';

type ListQuery = Extract<LockQuery, { readonly type: 'list' }>;

export interface LockListDeps {
  readonly routesOf: (span: Span) => Promise<readonly Route[]>;
  /** Asks the range that has all keys of the span; STALE_EPOCH if none has. */
  readonly ask: (query: Query, span: Span) => Promise<RangeReply>;
  readonly pause: () => Promise<void>;
}

export interface ListedLocks {
  readonly locks: readonly LockState[];
  readonly more: boolean;
  readonly replies: readonly RangeReply[];
}

/**
 * Each range lists its locks at a moment of its own, starting behind the last lock listed so far. After a merge, the
 * target is asked in place of each merged range, and has all of their locks. `more` may be true although no lock
 * follows: the limit was reached at the end of a range.
 */
export async function listLocks(query: ListQuery, deps: LockListDeps): Promise<ListedLocks> {
  const { end } = namespaceSpan(query.namespace, query.prefix);
  const locks: LockState[] = [];
  const replies: RangeReply[] = [];
  let start = firstPlace(query);
  while (compareBytes(start, end) < 0) {
    const limit = query.limit - locks.length;
    if (limit <= 0) return { locks, more: true, replies };
    const [part] = await deps.routesOf({ start, end });
    if (part === undefined) break;
    const after = locks.at(-1)?.lock.name ?? query.after;
    const reply = await listPart({ ...query, after, limit }, part, deps);
    if (reply === undefined) continue;
    const { result } = reply;
    if (result.type !== 'lock' || result.result.type !== 'list') {
      throw new ServiceError('INTERNAL', `a range answered a list of locks with ${result.type}`);
    }
    replies.push(reply);
    locks.push(...result.result.locks);
    if (result.result.more) return { locks, more: true, replies };
    start = part.end;
  }
  return { locks, more: false, replies };
}

function firstPlace({ namespace, prefix, after }: ListQuery): Bytes {
  const { start } = namespaceSpan(namespace, prefix);
  if (after.length === 0) return start;
  const next = lockSpan({ namespace, name: after }).end;
  return compareBytes(next, start) > 0 ? next : start;
}

/** Resolves with undefined if the range has been split or merged: then look the route up again. */
async function listPart(query: ListQuery, span: Span, calls: LockListDeps): Promise<RangeReply | undefined> {
  try {
    return await calls.ask({ type: 'lock', query }, span);
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'STALE_EPOCH') throw error;
    await calls.pause();
    return undefined;
  }
}
