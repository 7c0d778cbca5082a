/**
 * What one node knows of users and roles, from the masters' answers to its heartbeats.
 *
 * KA1. It only becomes newer: a master that has been deposed, and does not know it yet, may send an older image.
 * KA2. With authentication on, it is trusted for `AUTH_TRUST_MS` from the moment at which a heartbeat was *sent* that
 *      the masters' leader answered. After that, a node that is cut off from the masters refuses every request of a
 *      user. A leader of the masters that was deposed answers for at most an election time-out more.
 * KA3. A node that knows nothing yet lets requests wait until it does, or until their time is over. Authentication may
 *      be on.
 * KA4. While authentication is off as far as the node knows, it goes on without masters: a cluster without users does
 *      not depend on them for that.
 * KA5. What is needed when the masters are lost, to see what is wrong and to recover, is decided by what the node knew
 *      last, however long ago. A node that has never heard from masters has no data of users.
 * KA6. What a node has learned is kept on its disk for KA5, and for nothing else: authentication may have been switched
 *      on while the node was down, so KA3 holds for a node that has restarted.
 */
import { type Clock, ServiceError, type Timer } from '@remora/base';
import type { AuthImage } from '@remora/protocol';
import { Authority } from './permissions/authority.ts';
import { FIRST_AUTH } from './state/auth-state.ts';

/** KA2. Longer than the masters need for an election, or for a restart. */
export const AUTH_TRUST_MS = 30_000;

export interface KnownAuthDeps {
  readonly clock: Clock;
  /** Asks the masters soon: something waits for a newer image. */
  readonly hurry: () => void;
  /** What an earlier life of this node has learned (KA6). */
  readonly remembered?: AuthImage | undefined;
  /** Keeps what was learned for later lives (KA6). */
  readonly remember?: (image: AuthImage) => void;
}

/** A request that waits for an image. */
interface Waiting {
  readonly revision: number;
  readonly done: () => void;
}

export class KnownAuth {
  readonly #deps: KnownAuthDeps;
  /** Of this life or of an earlier one. */
  #lastKnown: Authority | undefined;
  #image: AuthImage = FIRST_AUTH;
  #trustedUntilMs = Number.NEGATIVE_INFINITY;
  readonly #waiting = new Set<Waiting>();
  readonly #listeners = new Set<() => void>();
  /**
   * Whether authentication is known to be off. A field, because each request of a cluster without users reads it, and
   * nothing else.
   */
  isOff = false;
  /** The revision that is known; 0: none (KA3). */
  revision = 0;

  constructor(deps: KnownAuthDeps) {
    this.#deps = deps;
    if (deps.remembered !== undefined) this.#keep(deps.remembered);
  }

  #keep(image: AuthImage): void {
    this.#image = image;
    this.#lastKnown = new Authority(image);
  }

  /** `image`: absent if the masters have none that is newer. `sentMs`: when they were asked. */
  learn(image: AuthImage | undefined, sentMs: number): void {
    this.#trustedUntilMs = Math.max(this.#trustedUntilMs, sentMs + AUTH_TRUST_MS);
    if (image === undefined || image.revision <= this.revision) return; // KA1
    if (image.revision !== this.#lastKnown?.revision) this.#deps.remember?.(image);
    this.#keep(image);
    this.revision = image.revision;
    this.isOff = !image.enabled;
    for (const waiting of [...this.#waiting]) {
      if (waiting.revision > image.revision) continue;
      this.#waiting.delete(waiting);
      waiting.done();
    }
    for (const listener of [...this.#listeners]) listener();
  }

  /** The image that is known last, to show it or to change it; decisions need `authority`. */
  get image(): AuthImage {
    return this.#image;
  }

  /** @throws ServiceError `UNAVAILABLE` while nothing is known (KA3), or when it is too old (KA2). */
  get authority(): Authority {
    const known = this.#lastKnown;
    if (known === undefined || this.revision === 0) {
      throw new ServiceError('UNAVAILABLE', 'this node has not heard from the masters who may do what; try again');
    }
    if (!this.isOff && this.#deps.clock.monotonicMs() >= this.#trustedUntilMs) {
      const seconds = AUTH_TRUST_MS / 1_000;
      const message = `this node has not reached the masters for ${seconds} s and cannot tell who may do what; use another node`;
      throw new ServiceError('UNAVAILABLE', message);
    }
    return known;
  }

  /** What the node knew last, however long ago; undefined if it has never heard from masters (KA5). */
  get lastKnown(): Authority | undefined {
    return this.#lastKnown;
  }

  /** Called when another revision is known. Returns a function that ends it. */
  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Calls back once this revision, or a later one, is known, or after the time; at once if it is. Returns a function
   * that ends the wait. Callers bound how many of them wait.
   */
  whenKnown(revision: number, timeoutMs: number, done: () => void): () => void {
    if (this.revision >= revision) {
      done();
      return nothing;
    }
    let timer: Timer | undefined;
    const stop = (): void => {
      timer?.cancel();
      this.#waiting.delete(waiting);
    };
    const waiting: Waiting = {
      revision,
      done: () => {
        stop();
        done();
      },
    };
    timer = this.#deps.clock.setTimer(Math.max(0, timeoutMs), waiting.done);
    this.#waiting.add(waiting);
    this.#deps.hurry();
    return stop;
  }
}

function nothing(): void {}
