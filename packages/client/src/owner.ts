import { asBuffer } from '@remora/base';
import type { HoldMode, LockId } from '@remora/lock';

/** A grant, as all handles of its owner see it; another object is another grant. */
export interface HeldGrant {
  version: number;
  mode: HoldMode;
}

/**
 * What this client does in the name of one owner of a lock: a session and a token. Several handles may share it.
 *
 * W1. Askings, cancels and releases of one owner take turns, each until it is answered or can no longer be applied: a
 *     cancel or release that comes late would otherwise undo what was granted after it.
 * W2. The server counts at least as many levels as `levels`, so that leaving an inner level never frees the lock.
 */
export class Owner {
  /** What `levels` belongs to. */
  grant: HeldGrant = { version: 0, mode: 'exclusive' };
  /** An upgrade or downgrade is under way: the version may be another one already. */
  converting = false;
  /** How often the lock was entered and not left, by all handles together. */
  levels = 0;
  /** The number of the latest acquire. */
  attempt = 0;
  /** An asking may still be under way somewhere, though another one was answered or it was given up. */
  askedAgain = false;
  readonly #onIdle: () => void;
  #busy = false;
  /** Made when somebody has to wait: nearly always nobody does. */
  #queue: (() => boolean)[] | undefined;

  constructor(onIdle: () => void) {
    this.#onIdle = onIdle;
  }

  /**
   * W1. Runs `fn` at its turn, at once if nothing is under way. It returns whether it takes the turn, which then lasts
   * until `leave`.
   */
  enter(fn: () => boolean): void {
    if (this.#busy) {
      this.#queue ??= [];
      this.#queue.push(fn);
      return;
    }
    this.#busy = true;
    if (!fn()) this.leave();
  }

  leave(): void {
    for (let next = this.#queue?.shift(); next !== undefined; next = this.#queue?.shift()) {
      if (next()) return;
    }
    this.#busy = false;
    if (this.levels <= 0) this.#onIdle();
  }

  /** A grant, or a further level of it. */
  granted(version: number, mode: HoldMode): void {
    if (version !== this.grant.version) {
      this.levels = 0;
      this.grant = { version, mode };
    }
    this.levels++;
  }

  /** The same grant in another way. */
  converted(version: number, mode: HoldMode): void {
    this.grant.version = version;
    this.grant.mode = mode;
  }
}

/** The owners of one session that hold something or are about to. */
export class Owners {
  readonly #byKey = new Map<string, Owner>();

  of(lock: LockId, token: string): Owner {
    const key = `${token}\0${lock.namespace}\0${asBuffer(lock.name).toString('latin1')}`;
    let owner = this.#byKey.get(key);
    if (owner === undefined) {
      owner = new Owner(() => this.#byKey.delete(key));
      this.#byKey.set(key, owner);
    }
    return owner;
  }
}
