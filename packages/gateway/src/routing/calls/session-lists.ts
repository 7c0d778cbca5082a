/** Lists sessions that are in several ranges, and the locks of a session. */
import { compareBytes, keyAfter, ServiceError } from '@remora/base';
import type { Query, RangeReply, SessionInfo, SessionQueryResult } from '@remora/protocol';
import { routingKey, sessionsSpan } from '../routes/request-keys.ts';
import type { LockListDeps } from './lock-lists.ts';

type ListQuery = Extract<Query, { readonly type: 'sessions' }>;
type ShowQuery = Extract<Query, { readonly type: 'session' }>;
type ShowResult = Extract<SessionQueryResult, { readonly type: 'session' }>;

export interface SessionAnswer<Result> {
  readonly result: Result;
  readonly replies: readonly RangeReply[];
}

/**
 * Each range lists its sessions at a moment of its own, starting behind the last session listed so far. After a merge,
 * the target is asked in place of each merged range, and has all of their sessions. `next` may be set although no
 * session follows: the limit was reached at the end of a range.
 */
export async function listSessions(query: ListQuery, deps: LockListDeps): Promise<SessionAnswer<SessionQueryResult>> {
  const { start, end } = sessionsSpan(query.after);
  const sessions: SessionInfo[] = [];
  const replies: RangeReply[] = [];
  let from = start;
  while (compareBytes(from, end) < 0) {
    const [part] = await deps.routesOf({ start: from, end });
    if (part === undefined) break;
    const rest = { after: sessions.at(-1)?.id ?? query.after, limit: query.limit - sessions.length };
    const reply = await unlessStale(deps, () => deps.ask({ ...query, ...rest }, part));
    if (reply === undefined) continue;
    const { result } = reply;
    if (result.type !== 'sessions') throw unexpected(result.type);
    replies.push(reply);
    sessions.push(...result.sessions);
    const { next } = result;
    if (next !== 0n) return { result: { type: 'sessions', sessions, next }, replies };
    from = part.end;
  }
  return { result: { type: 'sessions', sessions, next: 0n }, replies };
}

/** The answer of the session's home, with its locks in other ranges; each range answers for a moment of its own. */
export async function showSession(
  query: ShowQuery,
  ask: LockListDeps['ask'],
  askOthers: (query: Query) => Promise<readonly RangeReply[]>,
): Promise<SessionAnswer<ShowResult>> {
  const start = routingKey(query);
  const reply = await ask(query, { start, end: keyAfter(start) });
  const home = showResult(reply);
  if (home.session === undefined) return { result: home, replies: [reply] };
  const { id, incarnation } = home.session;
  const others = await askOthers({ type: 'session', id, incarnation });
  // The home may be among them; a range asked before a split, and its child asked after it, return the same locks.
  const all = [home, ...others.map(showResult)];
  const locks = new Map(all.flatMap(({ locks }) => locks).map((lock) => [nameOf(lock), lock]));
  const more = all.some((part) => part.more);
  return { result: { ...home, locks: [...locks.values()], more }, replies: [reply, ...others] };
}

function nameOf({ lock, ownerId, mode }: ShowResult['locks'][number]): string {
  return `${lock.namespace}/${Buffer.from(lock.name).toString('latin1')}/${ownerId}/${mode}`;
}

function showResult({ result }: RangeReply): ShowResult {
  if (result.type !== 'session') throw unexpected(result.type);
  return result;
}

/** Resolves with undefined if the range has been split or merged: then look the route up again. */
async function unlessStale(deps: LockListDeps, ask: () => Promise<RangeReply>): Promise<RangeReply | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'STALE_EPOCH') throw error;
    await deps.pause();
    return undefined;
  }
}

function unexpected(type: string): ServiceError {
  return new ServiceError('INTERNAL', `a range answered a query about sessions with ${type}`);
}
