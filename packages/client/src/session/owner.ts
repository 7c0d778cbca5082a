import { binaryString, equalBytes, type ServiceError } from '@remora/base';
import type { HoldMode, LockId } from '@remora/lock';

/** A grant, as all handles of its owner see it; another object is another grant. */
export interface HeldGrant {
  version: number;
  mode: HoldMode;
  /** Those that have not given it back: nearly always one. */
  handles: GrantHandle | Set<GrantHandle> | undefined;
}

export interface GrantHandle {
  /** It is over, or how it is held is not known any more. */
  onGrantLost(reason: ServiceError): void;
}

export function joinGrant(grant: HeldGrant, handle: GrantHandle): void {
  const { handles } = grant;
  if (handles === undefined) grant.handles = handle;
  else if (handles instanceof Set) handles.add(handle);
  else grant.handles = new Set([handles, handle]);
}

export function leaveGrant(grant: HeldGrant, handle: GrantHandle): void {
  const { handles } = grant;
  if (handles instanceof Set) handles.delete(handle);
  else if (handles === handle) grant.handles = undefined;
}

export function handlesOf({ handles }: HeldGrant): readonly GrantHandle[] {
  if (handles instanceof Set) return [...handles];
  return handles === undefined ? [] : [handles];
}

/**
 * What this client does in the name of one owner of a lock: a session and a token. Several handles may share it.
 *
 * W1. Askings, cancels and releases of one owner take turns, each until it is answered or can no longer be applied: a
 *     cancel or release that comes late would otherwise undo what was granted after it.
 * W2. The server counts at least as many levels as `levels`, so that leaving an inner level never frees the lock.
 */
export class OwnerTurns {
  readonly lock: LockId;
  readonly token: string;
  /** What `levels` belongs to. */
  grant: HeldGrant = { version: 0, mode: 'exclusive', handles: undefined };
  /** An upgrade or downgrade is under way: the version may be another one already. */
  converting = false;
  /** How often the lock was entered and not left, by all handles together. */
  levels = 0;
  /** The number of the latest acquire. */
  attempt = 0;
  /** An asking may still be under way somewhere, though another one was answered or it was given up. */
  askedAgain = false;
  readonly #onIdle: (owner: OwnerTurns) => void;
  #busy = false;
  /** Made when somebody has to wait: nearly always nobody does. */
  #queue: (() => boolean)[] | undefined;

  /** `onIdle`: nothing is under way in its name, and nothing held. */
  constructor(lock: LockId, token: string, onIdle: (owner: OwnerTurns) => void) {
    this.lock = lock;
    this.token = token;
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
    if (this.levels <= 0) this.#onIdle(this);
  }

  /** Resolves when nothing that began before is in flight in the owner's name. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.enter(() => {
        resolve();
        return false;
      });
    });
  }

  /** A grant, or a further level of it. */
  granted(version: number, mode: HoldMode): void {
    if (version !== this.grant.version) {
      this.levels = 0;
      this.grant = { version, mode, handles: undefined };
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
  /** Nearly every token stands for one lock, or for one at a time. */
  readonly #byToken = new Map<string, OwnerTurns>();
  /** The further locks of tokens that stand for several. */
  readonly #further = new Map<string, OwnerTurns>();

  of(lock: LockId, token: string): OwnerTurns {
    const first = this.#byToken.get(token);
    if (first !== undefined && isSameLock(first.lock, lock)) return first;
    const further = this.#further.size === 0 ? undefined : this.#further.get(keyOf(lock, token));
    if (further !== undefined) return further;
    const owner = new OwnerTurns(lock, token, this.#forget);
    if (first === undefined) this.#byToken.set(token, owner);
    else this.#further.set(keyOf(lock, token), owner);
    return owner;
  }

  /** A handle that is done with may be released once more: an owner that has come after its own one stays. */
  readonly #forget = (owner: OwnerTurns): void => {
    const { lock, token } = owner;
    if (this.#byToken.get(token) === owner) this.#byToken.delete(token);
    else if (this.#further.get(keyOf(lock, token)) === owner) this.#further.delete(keyOf(lock, token));
  };
}

function isSameLock(a: LockId, b: LockId): boolean {
  return a.namespace === b.namespace && equalBytes(a.name, b.name);
}

function keyOf(lock: LockId, token: string): string {
  return `${token}\0${lock.namespace}\0${binaryString(lock.name)}`;
}
