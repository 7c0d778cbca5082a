import { createHash } from 'node:crypto';
import { asBuffer, EMPTY_BYTES, type Random, randomGuid } from '@remora/base';
import type { AcquireAs, LockCommand, LockId, Owner, SessionRef } from '@remora/lock';
import { LOCK_DELAY_MAX_MS, validateLockCommand } from '@remora/lock';
import { toAttributes } from '../lock/lock-requests.ts';
import { type Fields, invalid } from './fields.ts';
import { parseSession } from './lock-json.ts';
import { refuse } from './range-calls.ts';

/** An acquire, an upgrade or the leaving of a barrier, as an HTTP client sent it. */
export interface AcquireRequest {
  readonly lock: LockId;
  readonly token: string;
  /** Whether the client chose the token, and so may repeat the call. */
  readonly mayRepeat: boolean;
  /** Undefined: the call opens a session of its own. */
  readonly session: SessionRef | undefined;
  /** TTL of the session that the call opens. */
  readonly ttlMs: number;
  readonly attributes: Readonly<Record<string, string>>;
  /** 0: the call does not wait. */
  readonly waitMs: number;
  readonly as: AcquireAs | undefined;
  /** The number of this request among those of its owner; a repeated call has the same number. */
  readonly attempt: number;
  readonly data: Uint8Array;
  readonly keepData: boolean;
  readonly delayMs: number;
}

/** Longer than the SDK's, as nothing renews the session in the background. */
export const TTL_DEFAULT_MS = 30_000;
export const TTL_MIN_MS = 1_000;
/** A day. To hold a lock for longer, renew the session. */
export const TTL_MAX_MS = 86_400_000;
/** Bounds how long a call keeps its connection open. */
export const WAIT_MAX_MS = 600_000;
/** A token releases the lock, so it must be hard to guess; a GUID has 36 characters. */
export const TOKEN_LENGTH_MIN = 16;
/** A token is for one acquire, which has this number. */
export const ATTEMPT = 1;
/** The number of leaving a barrier, which follows entering it. */
export const LEAVE_ATTEMPT = ATTEMPT + 1;
/** Fields of the answers to acquire and renew that a client may send back; they are ignored. */
export const OF_THE_GRANT = ['ttlMs', 'validMs', 'lockTimeMs', 'keptData'] as const;

export function readTtlMs(fields: Fields): number {
  return fields.durationMs('ttl', { min: TTL_MIN_MS, max: TTL_MAX_MS }) ?? TTL_DEFAULT_MS;
}

/** @throws ServiceError INVALID_ARGUMENT */
export function readAcquire(lock: LockId, fields: Fields, random: Random): AcquireRequest {
  const session = fields.text('session');
  const ttlMs = fields.durationMs('ttl', { min: TTL_MIN_MS, max: TTL_MAX_MS });
  const token = fields.text('token');
  if (token !== undefined && token.length < TOKEN_LENGTH_MIN) {
    throw invalid(`token must have at least ${TOKEN_LENGTH_MIN} characters and be hard to guess, such as a new GUID`);
  }
  const attributes = fields.textMap('attributes');
  if (session !== undefined && (ttlMs !== undefined || attributes !== undefined)) {
    throw invalid('ttl and attributes are for a session that the call opens: leave them out, or leave out session');
  }
  // Without a token, a grant that could neither be answered nor taken back would stay until the session ends.
  if (session !== undefined && token === undefined) {
    throw invalid('token is missing: with a session, choose one yourself, so that the call can be repeated');
  }
  const request: AcquireRequest = {
    lock,
    token: token ?? randomGuid(random),
    mayRepeat: token !== undefined,
    session: session === undefined ? undefined : parseSession(session),
    ttlMs: ttlMs ?? TTL_DEFAULT_MS,
    attributes: toAttributes(attributes ?? {}),
    waitMs: readWaitMs(fields),
    as: readAs(fields),
    attempt: ATTEMPT,
    data: fields.bytes('data') ?? EMPTY_BYTES,
    keepData: fields.flag('keepData'),
    delayMs: fields.durationMs('lockDelay', { min: 0, max: LOCK_DELAY_MAX_MS }) ?? 0,
  };
  fields.end();
  refuseUnused(request);
  refuse(validateLockCommand(acquireCommand(request, request.session ?? { lease: ownLease(request), incarnation: 0 })));
  return request;
}

/** A holder, from the fields that acquire answered. */
export interface Grantee {
  readonly session: SessionRef;
  readonly token: string;
  readonly version: number;
}

export function readGrantee(fields: Fields): Grantee {
  return {
    session: parseSession(fields.required('session', fields.text('session'))),
    token: fields.required('token', fields.text('token')),
    version: fields.required('version', fields.integer('version', { min: 1, max: Number.MAX_SAFE_INTEGER - ATTEMPT })),
  };
}

/**
 * Returns the number of an upgrade or a downgrade of the grant that the client knows. Each conversion makes a new
 * version, so the numbers grow: a repeated call has the same number, and a late one has a number below those of later
 * conversions.
 */
export function conversionAttempt({ version }: Grantee): number {
  return version + ATTEMPT;
}

/** @throws ServiceError INVALID_ARGUMENT */
export function readUpgrade(lock: LockId, fields: Fields): AcquireRequest {
  const grantee = readGrantee(fields);
  return readAsking(lock, fields, grantee, { as: { type: 'upgrade' }, attempt: conversionAttempt(grantee) });
}

/** Reads the leaving of a barrier, which waits until all have left. @throws ServiceError INVALID_ARGUMENT */
export function readLeave(lock: LockId, fields: Fields): AcquireRequest {
  return readAsking(lock, fields, readGrantee(fields), { as: { type: 'pass' }, attempt: LEAVE_ATTEMPT });
}

/** Reads a request of an owner that has acquired before. */
function readAsking(
  lock: LockId,
  fields: Fields,
  { session, token }: Grantee,
  asked: Pick<AcquireRequest, 'as' | 'attempt'>,
): AcquireRequest {
  const waitMs = readWaitMs(fields);
  fields.ignored(...OF_THE_GRANT).end();
  const request: AcquireRequest = {
    ...{ lock, token, session, mayRepeat: true, waitMs, ...asked },
    ...{ ttlMs: TTL_DEFAULT_MS, attributes: {}, data: EMPTY_BYTES, keepData: false, delayMs: 0 },
  };
  refuse(validateLockCommand(acquireCommand(request, session)));
  return request;
}

function readWaitMs(fields: Fields): number {
  return fields.durationMs('wait', { min: 0, max: WAIT_MAX_MS }) ?? 0;
}

function readAs(fields: Fields): AcquireAs | undefined {
  const asked = [readHeld(fields), readAtBarrier(fields)].filter((as) => as !== undefined);
  if (asked.length > 1) throw invalid('pass and parties are for barriers: leave out shared, permits and capacity');
  return asked[0];
}

function readAtBarrier(fields: Fields): AcquireAs | undefined {
  const pass = fields.flag('pass');
  const parties = fields.integer('parties');
  if (parties === undefined) return pass ? { type: 'pass' } : undefined;
  if (pass)
    throw invalid(
      'pass and parties exclude each other: pass waits until the barrier is lifted, parties until so many have entered',
    );
  return { type: 'enter', parties };
}

/** Refuses fields that a barrier has no use for. */
function refuseUnused({ as, data, keepData, delayMs }: AcquireRequest): void {
  if (as?.type !== 'pass' && as?.type !== 'enter') return;
  if (keepData || delayMs > 0)
    throw invalid('a barrier keeps no data and has no delay: leave out keepData and lockDelay');
  if (as.type === 'pass' && data.length > 0)
    throw invalid('a caller that passes a barrier holds no lock, so it has no data: leave out data');
}

function readHeld(fields: Fields): AcquireAs | undefined {
  const shared = fields.flag('shared');
  const permits = fields.integer('permits');
  const capacity = fields.integer('capacity');
  if (permits === undefined && capacity === undefined) return shared ? { type: 'shared' } : undefined;
  if (shared) throw invalid('shared is for locks and permits are for semaphores: leave out one of them');
  if (capacity === undefined) throw invalid('permits need capacity, the number of all permits of the semaphore');
  return { type: 'permits', permits: permits ?? 1, capacity };
}

export function acquireCommand(
  { lock, token, waitMs, as, attempt, data, keepData, delayMs }: AcquireRequest,
  session: SessionRef,
): LockCommand {
  return {
    type: 'acquire',
    lock,
    owner: { session, token },
    wait: waitMs > 0,
    waitUntilMs: 0,
    deadlineMs: 0,
    attempt,
    depthMax: 1,
    ...{ data, keepData, delayMs },
    ...(as === undefined ? {} : { as }),
  };
}

/**
 * The lease of the session that is opened for an acquire without one. It follows from the token, so that a repeated
 * call finds it at any node, and a release can tell it from a session that several locks share.
 */
export function ownLease(owner: Pick<AcquireRequest, 'lock' | 'token'>): bigint {
  return (digest(owner).readBigUInt64BE() >> 1n) | 1n;
}

/**
 * The request id of the command that opens that session: it is applied once while ranges remember it, however late it
 * comes.
 */
export function ownRequestId(owner: Pick<AcquireRequest, 'lock' | 'token'>): string {
  return `http.${digest(owner).toString('base64url')}`;
}

/** The request id of a lock command for which the caller chose an id. */
export function chosenRequestId(lock: LockId, chosen: string): string {
  return `http.${digest({ lock, token: chosen }, 'chosen').toString('base64url')}`;
}

export function isOwnSession({ session, token }: Owner, lock: LockId): boolean {
  return session.lease === ownLease({ lock, token });
}

function digest({ lock, token }: Pick<AcquireRequest, 'lock' | 'token'>, what = ''): Buffer {
  // The lengths separate the parts.
  const parts = [Buffer.from(lock.namespace), asBuffer(lock.name), Buffer.from(token)];
  if (what !== '') parts.push(Buffer.from(what));
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${part.length}:`).update(part);
  return hash.digest();
}
