import { EMPTY_BYTES } from '@remora/base';
import { LIST_LIMIT_MAX, type LockQuery, type LockState, type SearchedKind, validateLockQuery } from '@remora/lock';
import { invalid } from './fields.ts';
import type { LocksAnswer, NamespacesAnswer } from './json/locks.ts';
import { lockJson } from './lock-json.ts';
import { type RangeCalls, refuse } from './range-calls.ts';
import { onlyThese, percentEncoded, type Target, text, wholeNumber } from './targets.ts';

type Search = Extract<LockQuery, { readonly type: 'search' }>;

const LIST_LIMIT_DEFAULT = 100;
/** Searches of one request: each looks at `SEARCH_LOOKS_MAX` locks at most. */
const SEARCHES_MAX = 20;
const KINDS: readonly SearchedKind[] = ['exclusive', 'shared', 'semaphore', 'barrier'];

/**
 * Lists of locks, page by page.
 *
 * LL1. A page of a search may be short, or empty, although more follows: the work of one request is bounded, however
 *      few locks fit.
 */
export class LockLists {
  readonly #calls: RangeCalls;
  readonly #wallMs: () => number;

  constructor(calls: RangeCalls, wallMs: () => number) {
    this.#calls = calls;
    this.#wallMs = wallMs;
  }

  async list(namespace: string, { query: asked }: Target): Promise<LocksAnswer> {
    onlyThese(asked, ['prefix', 'after', 'limit', 'contains', 'kind', 'waiting']);
    const prefix = asked.get('prefix') ?? EMPTY_BYTES;
    const after = asked.get('after') ?? EMPTY_BYTES;
    const limit = wholeNumber(asked, 'limit', LIST_LIMIT_DEFAULT);
    const terms = { namespace, prefix, after, limit };
    const [contains, kind, isWaiting] = [asked.get('contains'), kindOf(asked), waitingOf(asked)];
    const isList = contains === undefined && kind === undefined && !isWaiting;
    const { locks, next } = isList
      ? await this.#listed({ type: 'list', ...terms, allKinds: true })
      : await this.#found({ type: 'search', ...terms, contains: contains ?? EMPTY_BYTES, kind }, isWaiting);
    return {
      locks: locks.map(lockJson),
      more: next !== undefined,
      ...(next === undefined ? {} : { next: percentEncoded(next) }),
      nowMs: this.#wallMs(),
    };
  }

  async #listed(query: Extract<LockQuery, { readonly type: 'list' }>): Promise<Listed> {
    refuse(validateLockQuery(query));
    const { locks, more } = await this.#calls.ask(query);
    return { locks, next: more ? locks.at(-1)?.lock.name : undefined };
  }

  /** LL1. */
  async #found(query: Search, isWaiting: boolean): Promise<Listed> {
    refuse(validateLockQuery(query));
    const locks: LockState[] = [];
    let next: Uint8Array | undefined = query.after;
    for (let i = 0; i < SEARCHES_MAX && next !== undefined && locks.length < query.limit; i++) {
      // Ranges do not look for waiters: each search returns a whole page, of which few may fit.
      const limit = isWaiting ? LIST_LIMIT_MAX : query.limit - locks.length;
      const page: Listed = await this.#calls.ask({ ...query, after: next, limit });
      locks.push(...(isWaiting ? page.locks.filter(hasWaiters) : page.locks));
      next = page.next;
    }
    if (locks.length <= query.limit) return { locks, next };
    const first = locks.slice(0, query.limit);
    return { locks: first, next: first.at(-1)?.lock.name };
  }

  async namespaces({ query: asked }: Target): Promise<NamespacesAnswer> {
    onlyThese(asked, ['after', 'limit']);
    const after = text(asked.get('after') ?? EMPTY_BYTES, 'after');
    const query = { type: 'namespaces', after, limit: wholeNumber(asked, 'limit', LIST_LIMIT_DEFAULT) } as const;
    refuse(validateLockQuery(query));
    const { namespaces, more } = await this.#calls.ask(query);
    const last = namespaces.at(-1);
    return { namespaces, more, ...(more && last !== undefined ? { next: percentEncoded(Buffer.from(last)) } : {}) };
  }
}

interface Listed {
  readonly locks: readonly LockState[];
  /** The name after which more may follow. */
  readonly next: Uint8Array | undefined;
}

/** Waiters in the queue, or at the barrier. */
function hasWaiters({ waiterCount, passing }: LockState): boolean {
  return waiterCount + passing > 0;
}

function waitingOf(query: Target['query']): boolean {
  const value = query.get('waiting');
  if (value === undefined) return false;
  const chosen = text(value, 'waiting');
  if (chosen !== 'true' && chosen !== 'false') throw invalid('waiting must be true or false');
  return chosen === 'true';
}

function kindOf(query: Target['query']): SearchedKind | undefined {
  const value = query.get('kind');
  if (value === undefined) return undefined;
  const kind = KINDS.find((known) => known === text(value, 'kind'));
  if (kind === undefined) throw invalid(`kind must be one of ${KINDS.join(', ')}`);
  return kind;
}
