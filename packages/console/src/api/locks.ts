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
}

/** `readAtMs`: the cluster's time of the answer, from which `remainingMs` counts. */
export type LockRow = LockJson & { readonly readAtMs: number };

export async function lockList(
  search: LockSearch,
  after: string | undefined,
  signal: AbortSignal,
): Promise<Part<LockRow>> {
  const { namespace, prefix, contains, kind } = search;
  const query = { prefix, contains, kind, after, limit: PAGE };
  const answer = await get<LocksAnswer>(`/v1/locks/${segment(namespace, 'namespace')}`, query, signal);
  serverTime(answer.nowMs);
  const readAtMs = answer.nowMs;
  return { rows: answer.locks.map((row) => ({ ...row, readAtMs })), next: answer.more ? answer.next : undefined };
}

export async function lock(name: LockName, signal: AbortSignal): Promise<LockAnswer> {
  const answer = await get<LockAnswer>(lockPath(name), {}, signal);
  serverTime(answer.nowMs);
  return answer;
}

export type Reason = { readonly by: string; readonly reason: string };

export function forceRelease(name: LockName, why: Reason): Promise<{ readonly version: number }> {
  return call('POST', `${lockPath(name)}/force-release`, { body: { requestId: randomId(), ...filled(why) } });
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

/** The attributes of sessions, by their ids; of the first thousand, which are all of most clusters. */
export async function sessionNames(signal: AbortSignal): Promise<ReadonlyMap<string, SessionInfoJson>> {
  const { sessions } = await get<SessionsAnswer>('/v1/sessions', { limit: 1_000 }, signal);
  return new Map(sessions.map((one) => [one.session, one]));
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
