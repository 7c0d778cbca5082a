import { createHash } from 'node:crypto';
import { asBuffer, EMPTY_BYTES, type Random, randomGuid } from '@remora/base';
import type { AcquireAs, LockCommand, LockId, Owner, SessionRef } from '@remora/lock';
import { LOCK_DELAY_MAX_MS, validateLockCommand } from '@remora/lock';
import { toAttributes } from '../lock/lock-requests.ts';
import { type Fields, invalid } from './fields.ts';
import { parseSession } from './lock-words.ts';
import { refuse } from './range-calls.ts';

/** What an acquire over HTTP asks for. */
export interface Claim {
  readonly lock: LockId;
  readonly token: string;
  /** The client chose the token, and may repeat the call. */
  readonly mayRepeat: boolean;
  /** Undefined: one of its own, which is opened for it. */
  readonly session: SessionRef | undefined;
  /** Of its own session. */
  readonly ttlMs: number;
  readonly attributes: Readonly<Record<string, string>>;
  /** 0: not at all. */
  readonly waitMs: number;
  readonly as: AcquireAs | undefined;
  readonly data: Uint8Array;
  readonly keepData: boolean;
  readonly delayMs: number;
}

/** No one renews in the background: longer than the SDK's. */
const TTL_DEFAULT_MS = 30_000;
export const TTL_MIN_MS = 1_000;
/** A day; for longer, a session is renewed. */
export const TTL_MAX_MS = 86_400_000;
/** Connections do not stay open for ever. */
export const WAIT_MAX_MS = 600_000;
/** A token is for one acquire: the first of its owner. */
export const ATTEMPT = 1;

export function readTtlMs(fields: Fields): number {
  return fields.durationMs('ttl', { min: TTL_MIN_MS, max: TTL_MAX_MS }) ?? TTL_DEFAULT_MS;
}

/** @throws ServiceError INVALID_ARGUMENT */
export function readClaim(lock: LockId, fields: Fields, random: Random): Claim {
  const session = fields.text('session');
  const ttlMs = fields.durationMs('ttl', { min: TTL_MIN_MS, max: TTL_MAX_MS });
  const token = fields.text('token');
  const attributes = fields.textMap('attributes');
  if (session !== undefined && (ttlMs !== undefined || attributes !== undefined)) {
    throw invalid('ttl and attributes are those of a session that is opened for the lock: leave them out, or session');
  }
  // Otherwise a grant that could be neither answered nor taken back would stay as long as the session does.
  if (session !== undefined && token === undefined) {
    throw invalid('token: with a session, name a token of your own, so that the call can be repeated');
  }
  const claim: Claim = {
    lock,
    token: token ?? randomGuid(random),
    mayRepeat: token !== undefined,
    session: session === undefined ? undefined : parseSession(session),
    ttlMs: ttlMs ?? TTL_DEFAULT_MS,
    attributes: toAttributes(attributes ?? {}),
    waitMs: fields.durationMs('wait', { min: 0, max: WAIT_MAX_MS }) ?? 0,
    as: readAs(fields),
    data: fields.bytes('data') ?? EMPTY_BYTES,
    keepData: fields.flag('keepData'),
    delayMs: fields.durationMs('lockDelay', { min: 0, max: LOCK_DELAY_MAX_MS }) ?? 0,
  };
  fields.end();
  refuse(validateLockCommand(acquireCommand(claim, claim.session ?? { lease: ownLease(claim), incarnation: 0 })));
  return claim;
}

function readAs(fields: Fields): AcquireAs | undefined {
  const shared = fields.flag('shared');
  const permits = fields.integer('permits');
  const capacity = fields.integer('capacity');
  if (permits === undefined && capacity === undefined) return shared ? { type: 'shared' } : undefined;
  if (shared) throw invalid('shared is for locks, and permits for semaphores');
  if (capacity === undefined) throw invalid('permits are of a semaphore: capacity says how many there are in all');
  return { type: 'permits', permits: permits ?? 1, capacity };
}

export function acquireCommand(
  { lock, token, waitMs, as, data, keepData, delayMs }: Claim,
  session: SessionRef,
): LockCommand {
  return {
    type: 'acquire',
    lock,
    owner: { session, token },
    wait: waitMs > 0,
    waitUntilMs: 0,
    deadlineMs: 0,
    attempt: ATTEMPT,
    depthMax: 1,
    ...{ data, keepData, delayMs },
    ...(as === undefined ? {} : { as }),
  };
}

/**
 * The lease of the session that is opened for an acquire which names none. Made of its token, so that the call finds it
 * again when it is repeated, at whichever node, and a release knows it from a session that others use.
 */
export function ownLease(owner: Pick<Claim, 'lock' | 'token'>): bigint {
  return (digest(owner).readBigUInt64BE() >> 1n) | 1n;
}

/** Of the command that opens it: applied once for as long as it is remembered, however late it comes. */
export function ownRequestId(owner: Pick<Claim, 'lock' | 'token'>): string {
  return `http.${digest(owner).toString('base64url')}`;
}

export function isOwnSession({ session, token }: Owner, lock: LockId): boolean {
  return session.lease === ownLease({ lock, token });
}

function digest({ lock, token }: Pick<Claim, 'lock' | 'token'>): Buffer {
  // Lengths keep parts apart.
  const parts = [Buffer.from(lock.namespace), asBuffer(lock.name), Buffer.from(token)];
  const hash = createHash('sha256');
  for (const part of parts) hash.update(`${part.length}:`).update(part);
  return hash.digest();
}
