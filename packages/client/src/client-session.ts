import type { ServiceError } from '@remora/base';
import type { BytesLike } from './kv/keys.ts';
import { Lock } from './lock/lock.ts';
import type { LockChoice } from './lock/lock-choice.ts';
import type { LockDeps } from './lock/lock-deps.ts';
import { type LockOptions, lockAs, lockIdOf, type NamespaceOptions } from './lock/lock-name.ts';
import { LockSet } from './lock/lock-set.ts';
import { Election } from './primitives/election.ts';
import { RwLock } from './primitives/rw-lock.ts';
import { Semaphore, type SemaphoreOptions } from './primitives/semaphore.ts';
import type { Session, SessionState } from './session/session.ts';
import { lookingSignal } from './transport/abort.ts';
import { idText, Printable } from './values/printable.ts';

/** A session of its own (`RemoraClient.session`): its locks are kept alive together, and released together. */
export class ClientSession extends Printable implements AsyncDisposable {
  readonly #session: Session;
  readonly #deps: LockDeps;
  readonly #timeoutMs: number;
  readonly #controller = new AbortController();

  constructor(session: Session, deps: LockDeps, timeoutMs: number) {
    super();
    this.#session = session;
    this.#deps = deps;
    this.#timeoutMs = timeoutMs;
    lookingSignal(this.#controller.signal, () => session.check());
    session.onLoss((reason: ServiceError) => this.#controller.abort(reason));
  }

  /** The id of the session's lease. Keys that are put with this lease are deleted when the session ends. */
  get lease(): bigint {
    return this.#session.ref.lease;
  }

  /** How long the session outlives its last heartbeat, in ms. */
  get ttlMs(): number {
    return this.#session.ttlMs;
  }

  /**
   * `active`: heartbeats are answered. `suspended`: heartbeats are not answered at the moment, and the session still
   * holds its locks. `lost`: it has expired, or may have. `closed`: this client has closed it.
   */
  get state(): SessionState {
    return this.#session.state;
  }

  /** Aborts, with the reason, when the session is lost or closed. */
  get signal(): AbortSignal {
    this.#session.check();
    return this.#controller.signal;
  }

  /** Its id, its TTL and its state. */
  toJSON(): object {
    const { lease, ttlMs, state } = this;
    return { lease: idText(lease), ttlMs, state };
  }

  /** A lock that belongs to this session. */
  lock(name: BytesLike, options: LockOptions = {}): Lock {
    return new Lock(...lockAs(this.#deps, name, options));
  }

  /** A lock for readers and writers that belongs to this session. */
  rwLock(name: BytesLike, options: LockOptions = {}): RwLock {
    return new RwLock(...lockAs(this.#deps, name, options));
  }

  /** A semaphore whose permits belong to this session. */
  semaphore(name: BytesLike, options: SemaphoreOptions): Semaphore {
    return new Semaphore(this.#deps, name, options);
  }

  /** An election. A leadership has a lease of its own, which ends together with this session when that is closed. */
  election(name: BytesLike, options: NamespaceOptions = {}): Election {
    return new Election(this.#deps, lockIdOf(name, options));
  }

  /** Several locks at once, as `RemoraClient.lockAll`; they belong to this session. */
  lockAll(choices: readonly LockChoice[]): LockSet {
    return new LockSet(this.#deps, choices);
  }

  /** Stops renewing the session without ending it: it keeps its locks and keys until its TTL is over. */
  async orphan(): Promise<void> {
    await this.#session.leave();
  }

  /**
   * Ends the session: releases its locks and deletes its keys, at once.
   *
   * @throws ServiceError UNAVAILABLE, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED or UNKNOWN_OUTCOME when the cluster did not
   *   answer; the client then retries in the background until the cluster answers or the client is closed.
   */
  async close(): Promise<void> {
    await this.#session.close(this.#timeoutMs);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}
