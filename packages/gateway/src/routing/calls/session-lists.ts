/** Sessions, and what they hold, where they are in several ranges. */
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
 * Each range lists what it has, as of its own moment, from behind what was listed before: one that others were merged into
 * since is asked in the place of each of them, and has all that they had. There may be more without there being any: the
 * limit was reached at the end of a range.
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
    const reply = await again(deps, () => deps.ask({ ...query, ...rest }, part));
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

/** What the session's home says, with the locks that other ranges have of it, each as of its own moment. */
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
  // The home may be among them, and one that was asked before a split and its child after it say the same.
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

/** Undefined when the range is not what it was: to be looked for again. */
async function again(deps: LockListDeps, ask: () => Promise<RangeReply>): Promise<RangeReply | undefined> {
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
