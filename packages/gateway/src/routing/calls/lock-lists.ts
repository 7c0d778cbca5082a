/** Lists the locks of a namespace, or the namespaces, that are in several ranges, range by range. */
import { type Bytes, compareBytes, ServiceError, type Span } from '@remora/base';
import { type LockQuery, type LockQueryResult, lockSpan, namespaceSpan, namespacesSpan } from '@remora/lock';
import type { Query, RangeReply } from '@remora/protocol';
import type { Route } from '../routes/route-map.ts';

export type LockListQuery = Extract<LockQuery, { readonly type: 'list' | 'search' | 'namespaces' }>;
type OfLocks = Exclude<LockListQuery, { readonly type: 'namespaces' }>;
type ListResult = Extract<LockQueryResult, { readonly type: LockListQuery['type'] }>;
type LockAnswer = Extract<RangeReply['result'], { readonly type: 'lock' }>['result'];

export interface LockListDeps {
  readonly routesOf: (span: Span) => Promise<readonly Route[]>;
  /** Asks the range that has all keys of the span; STALE_EPOCH if none has. */
  readonly ask: (query: Query, span: Span) => Promise<RangeReply>;
  readonly pause: () => Promise<void>;
}

export interface LockList {
  readonly result: ListResult;
  readonly replies: readonly RangeReply[];
}

/**
 * Each range lists its locks at a moment of its own, starting behind the last lock listed so far. After a merge, the
 * target is asked in place of each merged range, and has all of their locks. The answer may say that more follows
 * although nothing does: the limit was reached at the end of a range.
 */
export async function listLocks(query: LockListQuery, deps: LockListDeps): Promise<LockList> {
  const listed = listOf(query);
  const replies: RangeReply[] = [];
  let { start } = listed.span;
  while (compareBytes(start, listed.span.end) < 0) {
    if (listed.room <= 0) return { result: listed.page(true), replies };
    const [part] = await deps.routesOf({ start, end: listed.span.end });
    if (part === undefined) break;
    const reply = await listPart(listed.rest(), part, deps);
    if (reply === undefined) continue;
    const { result } = reply;
    if (result.type !== 'lock' || !listed.takes(result.result)) {
      throw new ServiceError('INTERNAL', `a range answered a list of locks with ${result.type}`);
    }
    replies.push(reply);
    if (hasMore(result.result)) return { result: listed.page(true), replies };
    start = part.end;
  }
  return { result: listed.page(false), replies };
}

/** A list that is put together. */
interface Listed {
  readonly span: Span;
  /** How many entries may still be added. */
  readonly room: number;
  /** The query for what follows. */
  rest(): LockListQuery;
  /** Adds what a range has answered. Returns false if that is no answer to the query. */
  takes(result: LockAnswer): result is ListResult;
  page(more: boolean): ListResult;
}

function listOf(query: LockListQuery): Listed {
  return query.type === 'namespaces' ? new ListedNamespaces(query) : new ListedLocks(query);
}

class ListedLocks implements Listed {
  readonly #query: OfLocks;
  readonly #locks: Extract<ListResult, { readonly type: 'list' }>['locks'][number][] = [];
  #after: Bytes;

  constructor(query: OfLocks) {
    this.#query = query;
    this.#after = query.after;
  }

  get span(): Span {
    const { namespace, prefix, after } = this.#query;
    const { start, end } = namespaceSpan(namespace, prefix);
    if (after.length === 0) return { start, end };
    const next = lockSpan({ namespace, name: after }).end;
    return { start: compareBytes(next, start) > 0 ? next : start, end };
  }

  get room(): number {
    return this.#query.limit - this.#locks.length;
  }

  rest(): LockListQuery {
    return { ...this.#query, after: this.#after, limit: this.room };
  }

  takes(result: LockAnswer): result is ListResult {
    if (result.type !== this.#query.type || !('locks' in result)) return false;
    this.#locks.push(...result.locks);
    const last = 'next' in result ? result.next : undefined;
    this.#after = last ?? result.locks.at(-1)?.lock.name ?? this.#after;
    return true;
  }

  page(more: boolean): ListResult {
    const locks = this.#locks;
    return this.#query.type === 'list'
      ? { type: 'list', locks, more }
      : { type: 'search', locks, next: more ? this.#after : undefined };
  }
}

class ListedNamespaces implements Listed {
  readonly #query: Extract<LockListQuery, { readonly type: 'namespaces' }>;
  readonly #namespaces: string[] = [];

  constructor(query: Extract<LockListQuery, { readonly type: 'namespaces' }>) {
    this.#query = query;
  }

  get span(): Span {
    return namespacesSpan(this.#query.after);
  }

  get room(): number {
    return this.#query.limit - this.#namespaces.length;
  }

  rest(): LockListQuery {
    return { ...this.#query, after: this.#namespaces.at(-1) ?? this.#query.after, limit: this.room };
  }

  takes(result: LockAnswer): result is ListResult {
    if (result.type !== 'namespaces') return false;
    this.#namespaces.push(...result.namespaces);
    return true;
  }

  page(more: boolean): ListResult {
    return { type: 'namespaces', namespaces: this.#namespaces, more };
  }
}

function hasMore(result: ListResult): boolean {
  return result.type === 'search' ? result.next !== undefined : result.more;
}

/** Resolves with undefined if the range has been split or merged: then look the route up again. */
async function listPart(query: LockListQuery, span: Span, calls: LockListDeps): Promise<RangeReply | undefined> {
  try {
    return await calls.ask({ type: 'lock', query }, span);
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'STALE_EPOCH') throw error;
    await calls.pause();
    return undefined;
  }
}
