import { binaryString, equalBytes, type ServiceError } from '@remora/base';
import type { HoldMode, LockId } from '@remora/lock';

/** A grant, shared by all handles of its owner. Two objects are two grants. */
export interface HeldGrant {
  version: number;
  mode: HoldMode;
  /** The handles that have not released it: nearly always one. */
  handles: GrantHandle | Set<GrantHandle> | undefined;
}

export interface GrantHandle {
  /** The grant is over, or it is unknown how it is held. */
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
 * The turns of one owner of a lock: a session and a token. Several handles may share an owner.
 *
 * W1. Acquires, cancels and releases of one owner take turns. Each turn lasts until the request is answered or can no
 *     longer be applied: a late cancel or release would otherwise undo a later grant.
 * W2. The server counts at least as many levels as `levels`, so leaving an inner level never frees the lock.
 */
export class OwnerTurns {
  readonly lock: LockId;
  readonly token: string;
  /** The grant that `levels` counts. */
  grant: HeldGrant = { version: 0, mode: 'exclusive', handles: undefined };
  /** An upgrade or downgrade is in flight: the version may have changed already. */
  converting = false;
  /** How many levels all handles together have entered and not left. */
  levels = 0;
  /** The number of the latest acquire. */
  attempt = 0;
  /** An acquire may still be in flight, although another request was answered or it was given up. */
  askedAgain = false;
  readonly #onIdle: (owner: OwnerTurns) => void;
  #busy = false;
  /** Created by the first caller that has to wait: usually there is none. */
  #queue: (() => boolean)[] | undefined;

  /** `onIdle` is called when nothing is in flight and nothing is held. */
  constructor(lock: LockId, token: string, onIdle: (owner: OwnerTurns) => void) {
    this.lock = lock;
    this.token = token;
    this.#onIdle = onIdle;
  }

  /**
   * W1. Runs `fn` when its turn comes, at once if no other turn is in progress. If `fn` returns true it keeps the turn
   *     until `leave`.
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

  /** The lock was granted, or entered once more. */
  granted(version: number, mode: HoldMode): void {
    if (version !== this.grant.version) {
      this.levels = 0;
      this.grant = { version, mode, handles: undefined };
    }
    this.levels++;
  }

  /** The grant was upgraded or downgraded. */
  converted(version: number, mode: HoldMode): void {
    this.grant.version = version;
    this.grant.mode = mode;
  }
}

/** The owners of one session that hold something or have a turn. */
export class Owners {
  /** Nearly every token is used for one lock, or for one at a time. */
  readonly #byToken = new Map<string, OwnerTurns>();
  /** The further locks of tokens that are used for several. */
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

  /** A handle may be released again after its end: a later owner with the same token stays. */
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
