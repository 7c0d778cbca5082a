import { type Bytes, type Clock, EMPTY_BYTES, ServiceError } from '@remora/base';
import type { AcquireAs, LockId } from '@remora/lock';
import { toBytes } from '../kv/keys.ts';
import { durationMs } from '../options/duration.ts';
import { capacity, parties, permits } from '../options/option-kinds.ts';
import { checkOptions } from '../options/options.ts';
import {
  AS_SESSIONS,
  DedicatedLease,
  type DedicatedLeaseRequest,
  dedicatedLeaseRequest,
} from '../session/dedicated-lease.ts';
import type { Session } from '../session/session.ts';
import { unlessAborted } from '../transport/abort.ts';
import { inTime } from '../transport/in-time.ts';
import { retryUntilAnswered } from '../transport/retry-until-answered.ts';
import { AcquireOperation, type AcquireRequest, aborted } from './acquire.ts';
import { notAtOnce } from './acquire-errors.ts';
import { ACQUIRE_OPTIONS, type AcquireOptions } from './acquire-options.ts';
import { HeldLock } from './held-lock.ts';
import type { LockDeps } from './lock-deps.ts';
import { ownHold } from './task-locks.ts';

/** What to acquire if it is not an exclusive lock: permits, a share, a place at a barrier. */
export interface AcquireWhat {
  readonly as?: AcquireAs;
  /** Give it a lease of its own, even where no option needs one. */
  readonly apart?: boolean;
}

const LOCK: AcquireWhat = {};
/** How deep a holder may re-enter by default, through its handle or with a token that the caller chose. */
const DEPTH_DEFAULT = 1_000;

/** @throws ServiceError LOCK_BUSY when the lock is taken and `wait` is 0; the others of `Lock.acquire`. */
export async function acquireLock(
  deps: LockDeps,
  id: LockId,
  options: AcquireOptions,
  what: AcquireWhat = LOCK,
): Promise<HeldLock> {
  checkOptions(ACQUIRE_OPTIONS, options);
  checkWanted(what.as);
  const { token, wait } = options;
  const waits = wait === undefined || durationMs(wait, 'wait') > 0;
  const { as } = what;
  const outer = ownHold(deps.requester, { lock: id, as, token, waits, reentrant: deps.reentrant });
  if (outer !== undefined) return outer.acquire({ depthMax: options.depthMax, signal: options.signal });
  const { clock, liveness } = deps.requester.ports;
  const waitMs = options.wait === undefined ? undefined : durationMs(options.wait, 'wait');
  const startedMs = clock.monotonicMs();
  const traced = deps.tracing.acquire(id, what.as);
  let own: DedicatedLease | undefined;
  let asked: Asked | undefined;
  liveness.hold();
  try {
    // Copied before the first await: the bytes belong to the caller.
    const data = options.data === undefined ? EMPTY_BYTES : toBytes(options.data);
    const wanted = dedicatedLeaseRequest(options) ?? (what.apart ? AS_SESSIONS : undefined);
    const opened = wanted === undefined ? deps.session() : deps.openLease(wanted.terms, id);
    // The session nearly always exists already, and awaiting it then would cost a turn of the event loop.
    const session = opened instanceof Promise ? await patiently(opened, { deps, options, wanted, waitMs }) : opened;
    own = wanted && new DedicatedLease(session, wanted, deps.requestTimeoutMs);
    // Checked here and not in the operation, which would leave an unused owner behind.
    if (options.signal?.aborted) throw aborted(options.signal);
    const request = requestOf(deps, id, { options, as: what.as, data, startedMs, waitMs });
    asked = { session, request, isGranted: false };
    const grant = await new AcquireOperation(deps.requester, session, request).run();
    if (grant === undefined) throw notAtOnce(request);
    asked.isGranted = true;
    if (own !== undefined) await withinWait(own.begin(), request, clock);
    // The session may have been lost since the grant, by another message of the same frame.
    if (session.lossReason !== undefined) throw session.lossReason;
    const held = new HeldLock(deps, session, { request, grant, own });
    if (options.onRevoke !== undefined) held.onRevoke(options.onRevoke);
    traced.granted(grant.version, grant.stats);
    return held;
  } catch (error) {
    if (own !== undefined) endLease(own, deps, asked);
    traced.failed(error);
    throw error;
  } finally {
    liveness.release();
  }
}

/** An acquire that has begun. */
interface Asked {
  readonly session: Session;
  readonly request: AcquireRequest;
  isGranted: boolean;
}

/**
 * Ends the lease of an acquire that failed. With a lock-delay the grant is released first, as others would wait for the
 * delay otherwise; the cancel that does so takes the owner's turn (owner.ts, W1).
 */
function endLease(own: DedicatedLease, { requester }: LockDeps, asked: Asked | undefined): void {
  if (asked === undefined || asked.request.delayMs === 0) return own.end();
  const { session, request, isGranted } = asked;
  const { lock, token, attempt } = request;
  const turns = session.owners.of(lock, token);
  turns.enter(() => {
    if (!isGranted) {
      own.end();
      return false;
    }
    const cancel = { type: 'cancel', lock, owner: { session: session.ref, token }, deadlineMs: 0, attempt } as const;
    retryUntilAnswered({ requester, session }, { type: 'lock', command: cancel }, () => {
      own.end();
      turns.leave();
    });
    return true;
  });
}

/** Does not wait. Resolves to undefined when the lock is taken. */
export async function tryAcquireLock(
  deps: LockDeps,
  id: LockId,
  options: Omit<AcquireOptions, 'wait'>,
  what: AcquireWhat = LOCK,
): Promise<HeldLock | undefined> {
  try {
    checkOptions(ACQUIRE_OPTIONS, options);
    return await acquireLock(deps, id, { ...options, wait: 0 }, what);
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'LOCK_BUSY') return undefined;
    throw error;
  }
}

interface Patience {
  readonly deps: LockDeps;
  readonly options: AcquireOptions;
  readonly wanted: DedicatedLeaseRequest | undefined;
  readonly waitMs: number | undefined;
}

/**
 * Waits for the session, for at most the `wait` of the acquire. A session that was opened for this acquire alone, and
 * arrives after that, is ended. A wait of 0 limits only the queueing: the request time-out limits the opening of the
 * session then.
 */
function patiently(opened: Promise<Session>, { deps, options, wanted, waitMs }: Patience): Promise<Session> {
  const late = (session: Session): void => {
    if (wanted !== undefined) new DedicatedLease(session, wanted, 0).end();
  };
  const { clock } = deps.requester.ports;
  // Not LOCK_TIMEOUT: it is unknown whether others hold the lock.
  const reason = (): ServiceError => notAnswered('did not open a session', waitMs);
  return unlessGivenUp(inTime(opened, { clock, ms: waitMs || undefined, reason, late }), options.signal, late);
}

/**
 * A lock with a lease of its own is acquired only once the terms of its lease are set (`DedicatedLease.begin`): this
 * waits for that within the wait as well. If it fails, the grant is released.
 */
function withinWait(
  begun: Promise<void>,
  { startedMs, askedWaitMs, signal }: AcquireRequest,
  clock: Clock,
): Promise<void> {
  const leftMs = askedWaitMs && Math.max(1, askedWaitMs - (clock.monotonicMs() - startedMs));
  const reason = (): ServiceError => notAnswered("did not confirm the terms of the lock's lease", askedWaitMs);
  return unlessGivenUp(inTime(begun, { clock, ms: leftMs || undefined, reason }), signal);
}

function notAnswered(what: string, waitMs: number | undefined): ServiceError {
  return new ServiceError('DEADLINE_EXCEEDED', `the cluster ${what} within ${waitMs} ms, the \`wait\` of this acquire`);
}

function unlessGivenUp<T>(coming: Promise<T>, signal: AbortSignal | undefined, late?: (value: T) => void): Promise<T> {
  if (signal === undefined) return coming;
  return unlessAborted(coming, signal, { reason: () => aborted(signal), ...(late && { late }) });
}

/** The session exists: the rest of the wait begins now. */
function requestOf(
  { requester, nextAttempt, newToken, requestTimeoutMs }: LockDeps,
  lock: LockId,
  asked: {
    readonly options: AcquireOptions;
    readonly as: AcquireAs | undefined;
    readonly data: Bytes;
    readonly startedMs: number;
    readonly waitMs: number | undefined;
  },
): AcquireRequest {
  const { options, as, data, startedMs, waitMs } = asked;
  const { token, depthMax, signal } = options;
  const levelsMax = depthMax ?? DEPTH_DEFAULT;
  // Field by field: spreading objects costs several times as much.
  return {
    lock,
    token: token ?? newToken(),
    attempt: nextAttempt(),
    startedMs,
    depthMax: depthMax === undefined && token === undefined ? 1 : levelsMax,
    levelsMax,
    data,
    keepData: options.keepData ?? false,
    delayMs: options.lockDelay === undefined ? 0 : durationMs(options.lockDelay, 'lockDelay'),
    // A wait that opening the session has used up still gets one attempt.
    waitMs: waitMs && Math.max(1, waitMs - (requester.ports.clock.monotonicMs() - startedMs)),
    askedWaitMs: waitMs,
    signal,
    requestTimeoutMs,
    as,
  };
}

function checkWanted(as: AcquireAs | undefined): void {
  if (as?.type === 'enter') parties(as.parties, 'parties');
  if (as?.type !== 'permits') return;
  capacity(as.capacity, 'capacity');
  permits(as.permits, 'permits');
}
