import { equalBytes, ServiceError } from '@remora/base';
import type { HolderState, LockId, LockNews, LockState, PublicOwner } from '@remora/lock';
import { type BytesLike, toBytes } from '../kv/keys.ts';
import { acquireLock } from '../lock/acquire-lock.ts';
import { WAIT_CHECKS } from '../lock/acquire-options.ts';
import type { HeldLock } from '../lock/held-lock.ts';
import type { HeldLockState } from '../lock/hold-liveness.ts';
import type { LockDeps } from '../lock/lock-deps.ts';
import {
  LOCK_EVENTS_OPTIONS,
  LockEvents,
  type LockEventsOptions,
  LockStates,
  lockWatchEvents,
} from '../lock/lock-events.ts';
import type { Duration } from '../options/duration.ts';
import { bytes, requireLease, ttl } from '../options/option-kinds.ts';
import { checkOptions, optionSet } from '../options/options.ts';
import type { Session } from '../session/session.ts';

/**
 * An election is a lock that is held alone: its holder leads, the candidates are its queue, in their order, and what the
 * leader proclaims is its data (docs/decisions/0033).
 *
 * EL1. `version` grows with every leadership: whatever is done in the name of the leader carries it, and is refused by
 *      whoever has seen a higher one.
 * EL2. Whoever observes is told of the present leader first, and then of each change, in order. What came and went while
 *      it could not be told (a lost connection, another gateway) may be missing.
 * EL3. A leadership, or a candidacy, has a lease of its own, which ends with it: who resumes it keeps nothing else alive that an
 *      earlier process left.
 */
export interface CampaignOptions {
  /** What to proclaim from the first moment on, at most 4 KiB. */
  readonly value?: BytesLike | undefined;
  /** How long to stand as a candidate; without it, as long as it takes. */
  readonly wait?: Duration | undefined;
  /** Gives up when aborted. */
  readonly signal?: AbortSignal | undefined;
  /** How long the leadership outlives its process; by default as long as the client's session would. */
  readonly ttl?: Duration | undefined;
}

export const CAMPAIGN_OPTIONS = optionSet<CampaignOptions>('campaign', { value: bytes, ...WAIT_CHECKS, ttl });

export interface ResumeOptions {
  /**
   * What to proclaim when elected anew, as somebody else leads, or led, by now; who leads on leads with what it proclaimed last.
   * At most 4 KiB, nothing by default.
   */
  readonly value?: BytesLike | undefined;
  /** As of `campaign`: it is needed when somebody else leads by now. */
  readonly wait?: Duration | undefined;
  readonly signal?: AbortSignal | undefined;
}

export const RESUME_OPTIONS = optionSet<ResumeOptions>('resume', { value: bytes, ...WAIT_CHECKS });

/** Who leads, and what it proclaims. */
export interface Leader {
  readonly value: Uint8Array;
  readonly version: number;
  readonly owner: PublicOwner;
  /** The wall time of the server when it was elected, in ms; for display. */
  readonly sinceMs: number;
}

const APART = { apart: true } as const;
/** In hexadecimal, as handles have it. */
const LEASE = /^[0-9a-f]{1,16}$/;

/** What a leader keeps, on disk for instance, to go on leading after its process has died. Plain JSON. */
export interface LeadershipHandle {
  readonly lease: string;
  readonly incarnation: number;
  readonly token: string;
  readonly attempt: number;
}

export class Election {
  readonly id: LockId;
  readonly #deps: LockDeps;

  constructor(deps: LockDeps, id: LockId) {
    this.#deps = deps;
    this.id = id;
  }

  /**
   * Stands as a candidate, and leads when it resolves.
   *
   * @throws ServiceError as `Lock.acquire`: LOCK_TIMEOUT when it was not elected within `wait`.
   */
  async campaign(options: CampaignOptions = {}): Promise<Leadership> {
    checkOptions(CAMPAIGN_OPTIONS, options);
    const { value = '', ...rest } = options;
    const held = await acquireLock(this.#deps, this.id, { ...rest, data: toBytes(value) }, APART);
    return new Leadership(held);
  }

  /**
   * Goes on with the leadership of an earlier process, under the same version, as long as its session lives; if somebody
   * else leads by now, as a candidate. Only for when that process has certainly ended: two that lead by one handle cannot be
   * told apart, not even by their version.
   *
   * @throws ServiceError SESSION_EXPIRED when its session has ended: campaign anew; INVALID_ARGUMENT for what is no handle.
   *   Others as `campaign`.
   */
  async resume(handle: LeadershipHandle, options: ResumeOptions = {}): Promise<Leadership> {
    requireHandle(handle);
    checkOptions(RESUME_OPTIONS, options);
    const { value = '', ...rest } = options;
    const { token, attempt } = handle;
    const ref = { lease: requireLease(BigInt(`0x${handle.lease}`), 'handle.lease'), incarnation: handle.incarnation };
    // The same number asks about the same acquire: a holder, or a candidate, is what it was. The session is taken up within
    // the acquire: it ends with that, if what was asked for is refused, rather than being renewed for nobody.
    const openLease = (): Promise<Session> => this.#deps.resumeSession(ref);
    const deps = { ...this.#deps, openLease, nextAttempt: () => attempt };
    const held = await acquireLock(deps, this.id, { ...rest, data: toBytes(value), token }, APART);
    return new Leadership(held);
  }

  /** Who leads now; undefined when nobody does. */
  async leader(): Promise<Leader | undefined> {
    const { requester, requestTimeoutMs } = this.#deps;
    const query = { type: 'show', lock: this.id, allKinds: true } as const;
    const { result } = await requester.query({ type: 'lock', query }, { timeoutMs: requestTimeoutMs });
    if (result.type !== 'lock' || result.result.type !== 'show') {
      throw new ServiceError('INTERNAL', `an election was answered by ${result.type}`);
    }
    return leaderOf(result.result.state);
  }

  /** The present leader, or undefined, and then each leader and each proclamation, as an async iterator (EL2). */
  observe(options: LockEventsOptions = {}): LockEvents<Leader | undefined> {
    checkOptions(LOCK_EVENTS_OPTIONS, options);
    const states = new LockStates();
    let told: Leader | undefined;
    let begun = false;
    const toEvents = (news: LockNews): readonly (Leader | undefined)[] => {
      for (const event of lockWatchEvents(news)) states.apply(event);
      const leader = leaderOf(states.get(this.id));
      if ((news.type !== 'state' && news.type !== 'events') || (begun && isSame(leader, told))) return [];
      begun = true;
      told = leader;
      return [leader];
    };
    const { namespace, name } = this.id;
    return new LockEvents(this.#deps.requester, { namespace, name, single: true }, { ...options, toEvents });
  }
}

/** A leadership of this client. Give it up by `resign`, or by `await using`. */
export class Leadership implements AsyncDisposable {
  readonly #held: HeldLock;

  constructor(held: HeldLock) {
    this.#held = held;
  }

  /** The fencing version: it grows with every leadership (EL1). */
  get version(): number {
    return this.#held.version;
  }

  /** Aborts when the leadership is lost, before anybody else can be elected; see `HeldLock.signal`. */
  get signal(): AbortSignal {
    return this.#held.signal;
  }

  get state(): HeldLockState {
    return this.#held.state;
  }

  /** What another process needs to go on with it when this one has died. */
  get handle(): LeadershipHandle {
    return this.#held.handle;
  }

  /** Asks the cluster whether it still leads; an answer is about the moment before it. */
  check(): Promise<boolean> {
    return this.#held.check();
  }

  /** Tells everybody who observes something else. @throws ServiceError as `HeldLock.setData`. */
  proclaim(value: BytesLike): Promise<void> {
    return this.#held.setData(value);
  }

  /** The next candidate leads from now on. */
  resign(): Promise<void> {
    return this.#held.release();
  }

  /** As `resign`; one that is lost needs none. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#held[Symbol.asyncDispose]();
  }
}

function leaderOf(state: LockState | undefined): Leader | undefined {
  const holder: HolderState | undefined = state?.holders.find(({ mode, delayed }) => mode === 'exclusive' && !delayed);
  if (holder === undefined) return undefined;
  const { data: value, version, owner, lockTimeMs: sinceMs } = holder;
  return { value, version, owner, sinceMs };
}

function isSame(a: Leader | undefined, b: Leader | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.version === b.version && equalBytes(a.value, b.value);
}

/** It comes from a file, or wherever a process has kept it. @throws ServiceError INVALID_ARGUMENT */
function requireHandle(handle: LeadershipHandle): void {
  const { lease, incarnation, token, attempt } = handle ?? {};
  const isHandle = typeof lease === 'string' && LEASE.test(lease) && typeof token === 'string';
  if (isHandle && Number.isSafeInteger(incarnation) && Number.isSafeInteger(attempt)) return;
  throw new ServiceError(
    'INVALID_ARGUMENT',
    'handle: expected the `handle` of a leadership: { lease, incarnation, token, attempt }',
  );
}
