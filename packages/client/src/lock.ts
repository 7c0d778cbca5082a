import { EMPTY_BYTES, randomGuid, ServiceError } from '@remora/base';
import type { AcquireAs, LockId, SessionRef } from '@remora/lock';
import { AcquireOperation, type AcquireRequest } from './acquire.ts';
import { type Duration, durationMs } from './duration.ts';
import type { GrantWatches } from './grant-watch.ts';
import { HeldLock } from './held-lock.ts';
import { type RunArguments, runHolding } from './holding.ts';
import { type BytesLike, toBytes } from './keys.ts';
import { eventsOfLock, type LockEvents, type LockEventsOptions, type LockWatchEvent } from './lock-events.ts';
import { AS_SESSIONS, type LeaseOptions, OwnLease, ownLeaseRequest } from './own-lease.ts';
import { clientClosed, type Requester } from './requester.ts';
import { type RevocationOutcome, type RevokeListener, type RevokeOptions, revokeLock } from './revoke.ts';
import type { Session } from './session.ts';
import type { SessionTerms } from './session-pace.ts';
import type { Tracing } from './tracing.ts';

export interface AcquireOptions extends LeaseOptions {
  /** How long to queue for the lock; without it, as long as it takes. 0: not at all (LOCK_BUSY when it is taken). */
  readonly wait?: Duration | undefined;
  /** Called when somebody asks for the lock: see `HeldLock.onRevoke`. */
  readonly onRevoke?: RevokeListener;
  /** Gives up when aborted. */
  readonly signal?: AbortSignal;
  /** Shown with the lock to whoever looks at it, at most 4 KiB. Changed by `setData` while it is held. */
  readonly data?: BytesLike;
  /**
   * The data stay with the lock when it is held no longer, released or lost, for whoever holds it next (`previousData`),
   * and nobody has to hold it for them to be seen. Without `data` the holder's own begin with what was kept; to leave
   * nothing, set them to nothing before the release. Default: no.
   */
  readonly keepData?: boolean;
  /**
   * The lock-delay, at most 60 s: when the session ends without this lock's release, nobody else is granted it for so long.
   * For work that cannot present `version` and may go on for a while after its time; a change of leader makes it longer.
   * Default: 0.
   */
  readonly lockDelay?: Duration;
  /**
   * The owner's token, 1 to 128 bytes. By default each acquire has its own, a GUID. With the token of a lock that
   * this session holds, the acquire is a re-entry, up to `depthMax` deep.
   */
  readonly token?: string;
  /** How deep the owner may re-enter; 1 (the default without a token) turns re-entry off. */
  readonly depthMax?: number;
}

/** What locks need of their client. */
export interface LockDeps {
  readonly requester: Requester;
  /** The session that locks belong to; opened when first asked for, and anew after a loss. */
  readonly session: () => Promise<Session>;
  /** Opens a session for one lock alone; without terms, with the TTL of the client's sessions. */
  readonly openLease: (terms: SessionTerms | undefined, lock: LockId) => Promise<Session>;
  /** Goes on with a session of an earlier process. */
  readonly resumeSession: (ref: SessionRef) => Promise<Session>;
  /** Numbers the acquires of this client. */
  readonly nextAttempt: () => number;
  readonly requestTimeoutMs: number;
  readonly grants: GrantWatches;
  readonly tracing: Tracing;
}

export const DEPTH_MAX = 1_000;

/** A lock by name. Making one costs nothing and asks nobody. */
export class Lock {
  readonly id: LockId;
  readonly #deps: LockDeps;

  constructor(deps: LockDeps, id: LockId) {
    this.#deps = deps;
    this.id = id;
  }

  /**
   * Acquires the lock, queueing first come, first served.
   *
   * A lock holds others off by itself only while everybody's clocks and processes behave: pass `version`, the fencing
   * token, to whatever the lock protects, and `signal` to the work done under it.
   *
   * @throws ServiceError LOCK_TIMEOUT after `wait`; LOCK_BUSY with `wait: 0`; CANCELED when `signal` aborted;
   *   SESSION_EXPIRED when the session was lost meanwhile; LOCK_KIND_MISMATCH when the name is in use as a semaphore; LOCK_CANCELED when the lock was granted, and taken away by
   *   force before the grant could arrive; UNAVAILABLE, DEADLINE_EXCEEDED or UNKNOWN_OUTCOME when the
   *   cluster did not answer. In each case nothing is left behind: a grant that comes too late is given back.
   */
  async acquire(options: AcquireOptions = {}): Promise<HeldLock> {
    const held = await acquireLock(this.#deps, this.id, options);
    if (held === undefined) throw lockBusy();
    return held;
  }

  /** Acquires the lock if it is free; undefined when it is taken. */
  async tryAcquire(options: Omit<AcquireOptions, 'wait'> = {}): Promise<HeldLock | undefined> {
    return acquireLock(this.#deps, this.id, { ...options, wait: 0 });
  }

  /**
   * Runs `work` while holding the lock, and gives what it gives or throws what it throws. `options` say how to acquire.
   *
   * ```ts
   * await remora.lock('orders/42').run({ wait: '5s' }, ({ version, signal }) => ship(order, { fence: version, signal }));
   * ```
   *
   * A lock that is lost meanwhile aborts `signal`, and ends nothing else: work that must not count then ends by
   * `signal.throwIfAborted()`.
   *
   * @throws ServiceError as `acquire` does; then nothing was run.
   */
  run<Result>(...args: RunArguments<AcquireOptions, HeldLock, Result>): Promise<Result> {
    return runHolding((options: AcquireOptions) => this.acquire(options), args, this.#deps.requester.ports.logger);
  }

  /**
   * Asks all who hold the lock to let go of it, and waits for what they do: nobody is forced. Who holds it hears of it by
   * `onRevoke`. @throws ServiceError CANCELED when `signal` aborted; INVALID_ARGUMENT.
   */
  revoke(options: RevokeOptions = {}): Promise<RevocationOutcome> {
    const { requester, requestTimeoutMs: timeoutMs } = this.#deps;
    return revokeLock(requester, this.id, { ...options, timeoutMs });
  }

  /** How it is now and what happens to it, as an async iterator: see `LockEvents`. */
  events(options: LockEventsOptions = {}): LockEvents<LockWatchEvent> {
    return eventsOfLock(this.#deps.requester, this.id, options);
  }
}

/** Undefined: it is taken, and `wait` is 0. */
export async function acquireLock(
  deps: LockDeps,
  id: LockId,
  options: AcquireOptions & {
    readonly as?: AcquireAs;
    /** It has a lease of its own, also where nothing is asked for that needs one. */
    readonly apart?: boolean;
  },
): Promise<HeldLock | undefined> {
  const { requester, nextAttempt, requestTimeoutMs } = deps;
  const waitMs = options.wait === undefined ? undefined : durationMs(options.wait, 'wait');
  const startedMs = requester.ports.clock.monotonicMs();
  const traced = deps.tracing.acquire(id, options.as);
  requester.ports.liveness.hold();
  try {
    const wanted = ownLeaseRequest(options) ?? (options.apart ? AS_SESSIONS : undefined);
    const session = wanted === undefined ? await deps.session() : await deps.openLease(wanted.terms, id);
    const spentMs = requester.ports.clock.monotonicMs() - startedMs;
    const request: AcquireRequest = {
      lock: id,
      token: options.token ?? randomGuid(requester.ports.random),
      attempt: nextAttempt(),
      startedMs,
      depthMax: options.depthMax ?? (options.token === undefined ? 1 : DEPTH_MAX),
      data: toBytes(options.data ?? EMPTY_BYTES),
      keepData: options.keepData ?? false,
      delayMs: durationMs(options.lockDelay ?? 0, 'lockDelay'),
      // A wait that was used up by opening the session still gets its one try.
      waitMs: waitMs === undefined || waitMs === 0 ? waitMs : Math.max(1, waitMs - spentMs),
      signal: options.signal,
      requestTimeoutMs,
      ...(options.as === undefined ? {} : { as: options.as }),
    };
    const own = wanted && new OwnLease(session, wanted, requestTimeoutMs);
    const held = await holding(deps, { session, request, own });
    if (options.onRevoke !== undefined) held?.onRevoke(options.onRevoke);
    if (held === undefined) traced.failed(lockBusy());
    else traced.granted(held.version, held.stats);
    return held;
  } catch (error) {
    traced.failed(error);
    throw error;
  } finally {
    requester.ports.liveness.release();
  }
}

/** `own`: the session is for this lock alone, and ends if it is not granted. */
async function holding(
  deps: LockDeps,
  asked: { readonly session: Session; readonly request: AcquireRequest; readonly own: OwnLease | undefined },
): Promise<HeldLock | undefined> {
  const { session, request, own } = asked;
  try {
    const grant = await new AcquireOperation(deps.requester, session, request).run();
    if (grant === undefined) own?.end();
    if (grant === undefined) return undefined;
    await own?.begin();
    // The session may have been lost since the grant came, by what came in the same frame.
    if (!session.alive) throw session.lossReason ?? clientClosed();
    return new HeldLock(deps, session, { request, own, ...grant });
  } catch (error) {
    own?.end();
    throw error;
  }
}

/** Of a lock or permits that were not given at once. */
export function lockBusy(): ServiceError {
  return new ServiceError('LOCK_BUSY', 'the lock is taken');
}
