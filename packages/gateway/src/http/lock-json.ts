/** The JSON forms of locks and sessions. */
import { type JsonBytes, jsonBytes, safeSpanMs } from '@remora/base';
import type {
  Condition,
  ForcedRelease,
  Holder,
  HolderState,
  LockResult,
  LockState,
  PublicOwner,
  SessionRef,
  Waiter,
} from '@remora/lock';
import type { SessionInfo } from '@remora/protocol';
import { invalid } from './fields.ts';

/**
 * Returns `lease.incarnation`, with the lease in hexadecimal; opaque to clients. Leases of etcd's clients may be any
 * 64-bit number, which is written without a sign.
 */
export function sessionText({ lease, incarnation }: SessionRef): string {
  return `${BigInt.asUintN(64, lease).toString(16)}.${incarnation}`;
}

const SESSION = /^([0-9a-f]{1,16})\.(\d{1,16})$/;

export function parseSession(text: string): SessionRef {
  const match = SESSION.exec(text);
  const lease = BigInt.asIntN(64, BigInt(`0x${match?.[1] ?? '0'}`));
  const incarnation = Number(match?.[2]);
  if (lease === 0n || !Number.isSafeInteger(incarnation)) {
    throw invalid('session: expected the id that acquire or opening a session returned');
  }
  return { lease, incarnation };
}

/**
 * Returns how long after a renewal a holder can rely on its session, given that its clock and the server's may drift
 * (docs/decisions/0010-clock-drift.md).
 */
export function validMs(ttlMs: number, ageMs = 0): number {
  return Math.max(0, Math.floor(safeSpanMs(ttlMs) - ageMs));
}

export interface SessionJson {
  readonly session: string;
  readonly ttlMs: number;
  readonly validMs: number;
}

export interface GrantJson extends SessionJson {
  readonly token: string;
  readonly version: number;
  readonly lockTimeMs: number;
  /** The data that an earlier holder left with the lock. */
  readonly keptData?: JsonBytes;
}

/** `renewed`: the session, with the age of the renewal that showed it alive. */
export function grantJson(
  token: string,
  { version, lockTimeMs, keptData }: Extract<LockResult, { readonly type: 'granted' }>,
  renewed: { readonly ref: SessionRef; readonly ttlMs: number; readonly ageMs: number },
): GrantJson {
  const { ref, ttlMs, ageMs } = renewed;
  return {
    ...{ session: sessionText(ref), token, version, ttlMs, validMs: validMs(ttlMs, ageMs), lockTimeMs },
    ...(keptData === undefined ? {} : { keptData: jsonBytes(keptData) }),
  };
}

export interface LockJson {
  readonly namespace: string;
  readonly name: JsonBytes;
  readonly kind: string;
  readonly holders: readonly HolderJson[];
  readonly holderCount: number;
  readonly waiters: readonly WaiterJson[];
  readonly waiterCount: number;
  readonly permits?: number;
  readonly capacity?: number;
  readonly keptData?: JsonBytes;
  readonly forced?: ForcedRelease;
  readonly passing?: number;
}

export interface OwnerJson {
  readonly session: string;
  /** The public id of the owner; the token itself is known to its client only. */
  readonly ownerId: string;
}

/** How long a session outlives its last heartbeat, and the condition that its client keeps to. */
export interface TermsJson {
  readonly ttlMs: number;
  readonly remainingMs: number;
  readonly condition?: Condition;
}

export interface HolderJson extends OwnerJson, Partial<TermsJson> {
  readonly version: number;
  readonly lockTimeMs: number;
  readonly data: JsonBytes;
  readonly mode?: string;
  readonly permits?: number;
  readonly depth: number;
  readonly keepData?: boolean;
  readonly lockDelayMs?: number;
  readonly delayed?: boolean;
}

export interface WaiterJson extends OwnerJson {
  readonly position: number;
  readonly mode: string;
  readonly permits?: number;
  readonly sinceMs: number;
}

export function lockJson(state: LockState): LockJson {
  const { lock, kind, holders, holderCount, waiters, waiterCount, permits, capacity, keptData, forced, passing } =
    state;
  return {
    namespace: lock.namespace,
    name: jsonBytes(lock.name),
    kind,
    holders: holders.map(holderJson),
    holderCount,
    waiters: waiters.map(waiterJson),
    waiterCount,
    ...(kind === 'semaphore' ? { permits, capacity } : {}),
    ...(keptData === undefined ? {} : { keptData: jsonBytes(keptData) }),
    ...(forced === undefined ? {} : { forced }),
    ...(passing === 0 ? {} : { passing }),
  };
}

export function holderJson(holder: Holder | HolderState): HolderJson {
  const { owner, version, lockTimeMs, data, depth } = holder;
  return {
    ...ownerJson(owner),
    ...('mode' in holder ? modeJson(holder) : {}),
    version,
    depth,
    lockTimeMs,
    data: jsonBytes(data),
    ...('keepsData' in holder ? leftBehind(holder) : {}),
  };
}

export function termsJson({ ttlMs, remainingMs, condition }: SessionInfo): TermsJson {
  return {
    ...{ ttlMs, remainingMs: Math.max(0, Math.round(remainingMs)) },
    ...(condition === undefined ? {} : { condition }),
  };
}

/** What remains with the lock after the hold ends, if anything does. */
function leftBehind({ keepsData, delayMs, delayed }: HolderState): Partial<HolderJson> {
  return {
    ...(keepsData ? { keepData: true } : {}),
    ...(delayMs > 0 ? { lockDelayMs: delayMs, delayed } : {}),
  };
}

export function ownerJson({ session, id }: PublicOwner): OwnerJson {
  return { session: sessionText(session), ownerId: id };
}

export function waiterJson({ owner, position, sinceMs, ...how }: Waiter): WaiterJson {
  return { ...ownerJson(owner), ...modeJson(how), position, sinceMs };
}

function modeJson<Mode extends string>({ mode, permits }: { readonly mode: Mode; readonly permits: number }) {
  return mode === 'permits' ? { mode, permits } : { mode };
}
