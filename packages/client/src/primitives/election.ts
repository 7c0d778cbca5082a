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
import { NamedLock } from '../lock/named-lock.ts';
import type { Duration } from '../options/duration.ts';
import { bytes, requireLease, ttl } from '../options/option-kinds.ts';
import { checkOptions, optionSet } from '../options/options.ts';
import type { Session } from '../session/session.ts';
import { Printable, printable } from '../values/printable.ts';

/**
 * Elections. An election is an exclusive lock: its holder leads, its queue are the candidates, and its data are what
 * the leader proclaims (docs/decisions/0033).
 *
 * EL1. `version` grows with every leadership. Whatever is done in the name of the leader carries it, and a receiver
 *      that has seen a higher one refuses it.
 * EL2. An observer receives the present leader first, and then each change, in order. Leaders that came and went while
 *      it had no connection may be missing.
 * EL3. A leadership, or a candidacy, has a lease of its own, which ends with it. So resuming one keeps nothing else
 *      alive that an earlier process left.
 */
export interface CampaignOptions {
  /** What to proclaim from the beginning of the leadership, at most 4 KiB. Default: nothing. */
  readonly value?: BytesLike | undefined;
  /** How long to stand as a candidate (LOCK_TIMEOUT afterwards). Default: as long as it takes. */
  readonly wait?: Duration | undefined;
  /** Gives up the candidacy when it aborts (CANCELED). */
  readonly signal?: AbortSignal | undefined;
  /** How long the leadership outlives its process. Default: the TTL of the client's sessions. */
  readonly ttl?: Duration | undefined;
}

export const CAMPAIGN_OPTIONS = optionSet<CampaignOptions>('campaign', { value: bytes, ...WAIT_CHECKS, ttl });

export interface ResumeOptions {
  /**
   * What to proclaim if it has to be elected again because somebody else has led since, at most 4 KiB. A leader that
   * still leads keeps what it proclaimed last. Default: nothing.
   */
  readonly value?: BytesLike | undefined;
  /** How long to stand as a candidate if somebody else leads by now. Default: as long as it takes. */
  readonly wait?: Duration | undefined;
  /** Gives up when it aborts (CANCELED). */
  readonly signal?: AbortSignal | undefined;
}

export const RESUME_OPTIONS = optionSet<ResumeOptions>('resume', { value: bytes, ...WAIT_CHECKS });

/** Who leads, and what it proclaims. */
export interface Leader {
  /** What the leader proclaims; empty if nothing. */
  readonly value: Uint8Array;
  /** The version of the leadership (EL1). */
  readonly version: number;
  readonly owner: PublicOwner;
  /** The wall time of the server at the election, in ms since 1970; for display only. */
  readonly sinceMs: number;
}

const APART = { apart: true } as const;
/** A lease id in hexadecimal, as handles have it. */
const LEASE = /^[0-9a-f]{1,16}$/;

/**
 * What a leader stores, for example on disk, to continue leading after its process has died. Plain JSON. Keep it
 * secret.
 */
export interface LeadershipHandle {
  readonly lease: string;
  readonly incarnation: number;
  readonly token: string;
  readonly attempt: number;
}

/** An election by name, made by `RemoraClient.election`. */
export class Election extends NamedLock {
  readonly #deps: LockDeps;

  constructor(deps: LockDeps, id: LockId) {
    super(id);
    this.#deps = deps;
  }

  /**
   * Stands as a candidate. Resolves once this candidate is the leader.
   *
   * @throws ServiceError LOCK_TIMEOUT when it was not elected within `wait`; the others of `Lock.acquire`.
   */
  async campaign(options: CampaignOptions = {}): Promise<Leadership> {
    checkOptions(CAMPAIGN_OPTIONS, options);
    const { value = '', ...rest } = options;
    const held = await acquireLock(this.#deps, this.id, { ...rest, data: toBytes(value) }, APART);
    return new Leadership(held);
  }

  /**
   * Continues the leadership of an earlier process under the same version, while its session exists. If somebody else
   * leads by now, stands as a candidate. Call it only when that process has certainly ended: two processes that lead by
   * one handle cannot be told apart, not even by their version.
   *
   * @throws ServiceError SESSION_EXPIRED when the session has ended: campaign again; INVALID_ARGUMENT for an invalid
   *   handle; the others of `campaign`.
   */
  async resume(handle: LeadershipHandle, options: ResumeOptions = {}): Promise<Leadership> {
    requireHandle(handle);
    checkOptions(RESUME_OPTIONS, options);
    const { value = '', ...rest } = options;
    const { token, attempt } = handle;
    const ref = { lease: requireLease(BigInt(`0x${handle.lease}`), 'handle.lease'), incarnation: handle.incarnation };
    // The attempt number names the same acquire, so a holder or a candidate stays what it was. The acquire takes the
    // session up, and so ends it if it is refused: otherwise the session would be renewed for nobody.
    const openLease = (): Promise<Session> => this.#deps.resumeSession(ref);
    const deps = { ...this.#deps, openLease, nextAttempt: () => attempt };
    const held = await acquireLock(deps, this.id, { ...rest, data: toBytes(value), token }, APART);
    return new Leadership(held);
  }

  /** Returns the present leader; undefined when nobody leads. */
  async leader(): Promise<Leader | undefined> {
    const { requester, requestTimeoutMs } = this.#deps;
    const query = { type: 'show', lock: this.id, allKinds: true } as const;
    const { result } = await requester.query({ type: 'lock', query }, { timeoutMs: requestTimeoutMs });
    if (result.type !== 'lock' || result.result.type !== 'show') {
      throw new ServiceError('INTERNAL', `an election was answered by ${result.type}`);
    }
    return leaderOf(result.result.state);
  }

  /**
   * The present leader, and then each change of it and each proclamation, as an async iterator; undefined: nobody leads
   * (EL2).
   */
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

/** A leadership of this client. Give it up with `release`, or with `await using`. */
export class Leadership extends Printable implements AsyncDisposable {
  readonly #held: HeldLock;

  constructor(held: HeldLock) {
    super();
    this.#held = held;
  }

  /** The name of the election, as text. */
  get name(): string {
    return this.#held.name;
  }

  /** The fencing version, which grows with every leadership (EL1). */
  get version(): number {
    return this.#held.version;
  }

  /** Aborts when the leadership is lost; see `HeldLock.signal`. */
  get signal(): AbortSignal {
    return this.#held.signal;
  }

  /** See `HeldLock.state`. */
  get state(): HeldLockState {
    return this.#held.state;
  }

  /** What another process needs for `Election.resume` after this process has died. */
  get handle(): LeadershipHandle {
    return this.#held.handle;
  }

  /** Its name, its version and its state. */
  toJSON(): object {
    return this.#held.toJSON();
  }

  /** Asks the cluster whether this leadership still lasts. The answer is about a moment before it arrives. */
  check(): Promise<boolean> {
    return this.#held.check();
  }

  /** Proclaims another value to all observers, at most 4 KiB. @throws ServiceError as `HeldLock.setData`. */
  proclaim(value: BytesLike): Promise<void> {
    return this.#held.setData(value);
  }

  /** Gives up the leadership: the next candidate leads. @throws ServiceError as `HeldLock.release`. */
  release(): Promise<void> {
    return this.#held.release();
  }

  /** As `release`, but does not throw when the leadership was already lost. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#held[Symbol.asyncDispose]();
  }
}

function leaderOf(state: LockState | undefined): Leader | undefined {
  const holder: HolderState | undefined = state?.holders.find(({ mode, delayed }) => mode === 'exclusive' && !delayed);
  if (holder === undefined) return undefined;
  const { data: value, version, owner, lockTimeMs: sinceMs } = holder;
  return printable({ value, version, owner, sinceMs });
}

function isSame(a: Leader | undefined, b: Leader | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.version === b.version && equalBytes(a.value, b.value);
}

/** A handle may have been read from a file. @throws ServiceError INVALID_ARGUMENT for an invalid one. */
function requireHandle(handle: LeadershipHandle): void {
  const { lease, incarnation, token, attempt } = handle ?? {};
  const isHandle = typeof lease === 'string' && LEASE.test(lease) && typeof token === 'string';
  if (isHandle && Number.isSafeInteger(incarnation) && Number.isSafeInteger(attempt)) return;
  throw new ServiceError(
    'INVALID_ARGUMENT',
    'handle: expected the `handle` of a leadership: { lease, incarnation, token, attempt }',
  );
}
