/** Calls about locks and sessions. */
import type {
  LockAnswer,
  LocksAnswer,
  NamespacesAnswer,
  SessionAnswer,
  SessionInfoJson,
  SessionLocksAnswer,
  SessionsAnswer,
} from '@remora/gateway/http/json/locks';
import { serverTime } from '../app/time.ts';
import { isPathSafe, type JsonBytes, percentEncoded } from '../logic/bytes.ts';
import type { Part } from '../logic/parts.ts';
import { randomId } from '../logic/random-id.ts';
import { cursorBefore } from '../logic/session-text.ts';
import { call, get } from './client.ts';
import { ApiError } from './errors.ts';

export type LockJson = LocksAnswer['locks'][number];
export type HolderJson = LockJson['holders'][number];
export type WaiterJson = LockJson['waiters'][number];

export interface LockName {
  readonly namespace: string;
  readonly name: JsonBytes;
}

const PAGE = 100;

export async function namespaces(signal: AbortSignal): Promise<readonly string[]> {
  return (await get<NamespacesAnswer>('/v1/namespaces', { limit: 1_000 }, signal)).namespaces;
}

export interface LockSearch {
  readonly namespace: string;
  readonly prefix: string;
  readonly contains: string;
  readonly kind: string;
  /** Only locks with waiters: `true`; any: empty. */
  readonly waiting: string;
}

export async function lockList(
  search: LockSearch,
  after: string | undefined,
  signal: AbortSignal,
): Promise<Part<LockJson>> {
  const { namespace, ...terms } = search;
  const query = { ...terms, after, limit: PAGE };
  const answer = await get<LocksAnswer>(`/v1/locks/${segment(namespace, 'namespace')}`, query, signal);
  serverTime(answer.nowMs);
  return { rows: answer.locks, next: answer.more ? answer.next : undefined };
}

export async function lock(name: LockName, signal: AbortSignal): Promise<LockAnswer> {
  const answer = await get<LockAnswer>(lockPath(name), {}, signal);
  serverTime(answer.nowMs);
  return answer;
}

export type Reason = { readonly by: string; readonly reason: string };

/** Takes the lock from the holders up to a version, and from none that was granted it later. */
export function forceRelease(
  name: LockName,
  { upToVersion, ...why }: Reason & { readonly upToVersion: number },
): Promise<{ readonly version: number }> {
  const body = { requestId: randomId(), upToVersion, ...filled(why) };
  return call('POST', `${lockPath(name)}/force-release`, { body });
}

export function revoke(name: LockName, why: Reason & { readonly for: string }): Promise<{ readonly version: number }> {
  return call('POST', `${lockPath(name)}/revoke`, { body: filled(why) });
}

export function setCapacity(name: LockName, capacity: number): Promise<unknown> {
  return call('PUT', `${lockPath(name)}/capacity`, { body: { capacity } });
}

export function forget(name: LockName): Promise<unknown> {
  return call('DELETE', `${lockPath(name)}/data`);
}

export function eventsPath({ namespace, name }: LockName): string {
  return `/v1/events/${segment(namespace, 'namespace')}/${segment(name, 'lock')}`;
}

export async function sessionList(
  owner: string | undefined,
  after: string | undefined,
  signal: AbortSignal,
): Promise<Part<SessionInfoJson>> {
  const answer = await get<SessionsAnswer>('/v1/sessions', { owner, after, limit: PAGE }, signal);
  return { rows: answer.sessions, next: answer.more ? answer.next : undefined };
}

export interface KnownSessions {
  readonly byId: ReadonlyMap<string, SessionInfoJson>;
  /** Whether these are all sessions. */
  readonly isWhole: boolean;
}

/** The first thousand sessions, which are all of most clusters. */
export async function knownSessions(signal: AbortSignal): Promise<KnownSessions> {
  const { sessions, more } = await get<SessionsAnswer>('/v1/sessions', { limit: 1_000 }, signal);
  return { byId: new Map(sessions.map((one) => [one.session, one])), isWhole: !more };
}

/** One session without its locks, which is cheaper than `session`. Undefined: it has ended. */
export async function sessionInfo(id: string, signal: AbortSignal): Promise<SessionInfoJson | undefined> {
  const { sessions } = await get<SessionsAnswer>('/v1/sessions', { after: cursorBefore(id), limit: 1 }, signal);
  return sessions.find(({ session: found }) => found === id);
}

export function session(id: string, signal: AbortSignal): Promise<SessionAnswer> {
  return get<SessionAnswer>(`/v1/sessions/${percentEncoded(id)}`, {}, signal);
}

export async function sessionLocks(id: string, signal: AbortSignal): Promise<SessionLocksAnswer> {
  const answer = await get<SessionLocksAnswer>(`/v1/sessions/${percentEncoded(id)}/locks`, {}, signal);
  serverTime(answer.nowMs);
  return answer;
}

export function closeSession(id: string): Promise<{ readonly closed: boolean }> {
  return call('DELETE', `/v1/sessions/${percentEncoded(id)}`);
}

function lockPath({ namespace, name }: LockName): string {
  return `/v1/locks/${segment(namespace, 'namespace')}/${segment(name, 'lock')}`;
}

/** @throws {ApiError} for names that no browser can send in a path. */
function segment(value: JsonBytes, what: string): string {
  if (isPathSafe(value)) return percentEncoded(value);
  throw new ApiError(0, 'INVALID_ARGUMENT', `browsers cannot send the ${what} name "${value}"; use the command line`);
}

/** Empty fields are left out. */
function filled(fields: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''));
}
