/**
 * Checks whether locks exclude, by the knowledge of their users (design §15). Events come in the order of real time.
 *
 * Promises:
 * K1. One holder: from `granted` to `left` an owner shares the lock with nobody, or only with readers if it reads, or
 *     only with others who have permits.
 * K2. Versions grow: a grant has a higher version than every grant that was known when it was requested, and a unique
 *     version; only readers may share one.
 * K3. First come, first served: an owner that was in the queue before another one asked is granted before it.
 *     Exception: an owner that asked for more permits than a semaphore had meanwhile. It is refused then, and if it
 *     does not receive the refusal, it asks again.
 * K4. Fencing: a resource accepts no write with a lower version than that of an earlier accepted write.
 * K5. Every request is answered: at the end nobody waits.
 * K6. Permits: when a holder was granted its permits, all holders together had no more permits than the semaphore.
 * K7. An owner that resumes a grant that it held before has the same version, and nobody was granted the lock in
 *     between.
 *
 * An owner is one acquire: a client that asks again after it left is another owner. `granted` again without `left` in
 * between is a reentrant acquire, or a change of the mode, before which the owner reports that it is `converting`.
 */
import { assert } from '@remora/base';
import { type Check, type Finding, NOTHING, violation } from '../check.ts';

export type LockMode = 'exclusive' | 'shared' | 'permits';

export type LockEvent =
  /** The acquire was sent. */
  | {
      readonly type: 'asked';
      readonly lock: string;
      readonly owner: string;
      readonly mode: LockMode;
      /** For a semaphore. */
      readonly permits?: number;
    }
  /** The owner is known to wait in the lock's queue. */
  | { readonly type: 'queued'; readonly lock: string; readonly owner: string }
  /**
   * The owner will wait no longer, or may be removed from the queue from now on: canceled, timed out, or its session is
   * about to end. It may have been granted the lock before that, and learn of it later.
   */
  | { readonly type: 'gone'; readonly lock: string; readonly owner: string }
  | {
      readonly type: 'granted';
      readonly lock: string;
      readonly owner: string;
      readonly mode: LockMode;
      readonly version: number;
      /** For a semaphore. */
      readonly permits?: number;
    }
  /** An owner that has left relies on its grant again: another process continues with the hold. */
  | { readonly type: 'resumed'; readonly lock: string; readonly owner: string; readonly version: number }
  /** The owner requests another mode. Until it is granted again, it relies only on a share of the lock. */
  | { readonly type: 'converting'; readonly lock: string; readonly owner: string }
  /** A semaphore may have this many permits from now on. Once that is `settled`, it has no other number. */
  | { readonly type: 'capacity'; readonly lock: string; readonly capacity: number; readonly settled: boolean }
  /**
   * The owner no longer relies on the lock: before the release is sent, when the loss is noticed, or when the client
   * dies.
   */
  | { readonly type: 'left'; readonly lock: string; readonly owner: string }
  /** The resource that the lock protects accepted a write with this version. */
  | { readonly type: 'accepted'; readonly lock: string; readonly owner: string; readonly version: number };

interface Waiter {
  readonly mode: LockMode;
  readonly permits: number;
  /** The highest version known when it asked. */
  readonly versionAtAsk: number;
  readonly askedAt: number;
  /** When it was known to be in the queue. */
  queuedAt: number;
  /** The lowest version of the owners that asked when this one was in the queue, and were granted since. */
  overtakenBy: number;
}

interface Holder {
  mode: LockMode;
  version: number;
  readonly permits: number;
  /** When it asked, and the highest version known then. For the grant, or for its latest change. */
  askedAt: number;
  versionAtAsk: number | undefined;
}

/** How many permits a semaphore may have had, and from when to when. */
interface Capacity {
  readonly capacity: number;
  readonly from: number;
  to: number;
}

interface Lock {
  readonly name: string;
  readonly waiters: Map<string, Waiter>;
  /** Owners that are gone, and that were not granted the lock as far as is known. */
  readonly gone: Map<string, Waiter>;
  readonly holders: Map<string, Holder>;
  /** By version: the mode of the grant. */
  readonly modes: Map<number, LockMode>;
  readonly capacities: Capacity[];
  /** The highest granted version. Then the highest version of an accepted write. */
  version: number;
  accepted: number;
}

const NEVER = Number.POSITIVE_INFINITY;
/** How many versions are remembered per lock, to detect duplicates. More are a mistake of the test. */
const VERSIONS_MAX = 1_000_000;

export class LockCheck implements Check<LockEvent> {
  readonly name = 'lock';
  readonly #locks = new Map<string, Lock>();
  #now = 0;

  observe(event: LockEvent): readonly Finding[] {
    const lock = this.#lock(event.lock);
    this.#now += 1;
    switch (event.type) {
      case 'asked':
        assert(!lock.waiters.has(event.owner), `${event.owner} asks once`);
        lock.waiters.set(event.owner, {
          mode: event.mode,
          permits: event.permits ?? 0,
          versionAtAsk: lock.version,
          askedAt: this.#now,
          queuedAt: NEVER,
          overtakenBy: NEVER,
        });
        return NOTHING;
      case 'queued': {
        const waiter = lock.waiters.get(event.owner);
        if (waiter !== undefined) waiter.queuedAt = Math.min(waiter.queuedAt, this.#now);
        return NOTHING;
      }
      case 'gone': {
        const waiter = lock.waiters.get(event.owner);
        if (waiter !== undefined) lock.gone.set(event.owner, waiter);
        lock.waiters.delete(event.owner);
        return NOTHING;
      }
      case 'granted':
        return this.#grant(lock, event);
      case 'resumed':
        return this.#resume(lock, event);
      case 'left':
        lock.holders.delete(event.owner);
        return NOTHING;
      case 'converting': {
        const holder = lock.holders.get(event.owner);
        if (holder !== undefined) Object.assign(holder, { mode: 'shared', versionAtAsk: lock.version });
        return NOTHING;
      }
      case 'capacity':
        this.#setCapacity(lock, event);
        return NOTHING;
      case 'accepted':
        return accept(lock, event);
    }
  }

  /** K5. */
  finish(): readonly Finding[] {
    return [...this.#locks.values()].flatMap(({ name, waiters }) =>
      [...waiters.keys()].map((owner) => violation('lock: who asks is answered', `${owner} still waits for ${name}`)),
    );
  }

  #setCapacity({ capacities }: Lock, { capacity, settled }: Extract<LockEvent, { type: 'capacity' }>): void {
    if (!settled) {
      capacities.push({ capacity, from: this.#now, to: NEVER });
      return;
    }
    for (const other of capacities) if (other.capacity !== capacity) other.to = Math.min(other.to, this.#now);
  }

  #grant(
    lock: Lock,
    { owner, mode, version, permits = 0 }: Extract<LockEvent, { type: 'granted' }>,
  ): readonly Finding[] {
    const waiter = lock.waiters.get(owner);
    const what = `${owner} was granted ${lock.name} (${mode}, version ${version})`;
    const found: Finding[] = [];
    for (const [other, holder] of lock.holders) {
      if (other === owner || (mode !== 'exclusive' && holder.mode === mode)) continue;
      found.push(violation('lock: one holder', `${what} while ${other} held it (${holder.mode}, ${holder.version})`));
    }
    const held = lock.holders.get(owner);
    const asked = waiter ?? lock.gone.get(owner);
    const askedAt = asked?.askedAt ?? held?.askedAt ?? this.#now;
    lock.holders.set(owner, { mode, version, permits, askedAt, versionAtAsk: undefined });
    lock.waiters.delete(owner);
    lock.gone.delete(owner);
    const floor = asked?.versionAtAsk ?? held?.versionAtAsk ?? lock.version;
    if (held === undefined || held.version !== version) found.push(...newVersion(lock, { what, mode, version, floor }));
    if (mode === 'permits') found.push(...this.#tooManyPermits(lock, what));
    if (held === undefined && waiter !== undefined) found.push(...this.#overtakes(lock, { what, version, waiter }));
    lock.version = Math.max(lock.version, version);
    return found;
  }

  /** K1, K7. For a lock that is held exclusively. */
  #resume(lock: Lock, { owner, version }: Extract<LockEvent, { type: 'resumed' }>): readonly Finding[] {
    const what = `${owner} goes on with ${lock.name} (version ${version})`;
    const found = [...lock.holders.keys()].map((other) =>
      violation('lock: one holder', `${what} while ${other} held it`),
    );
    lock.holders.set(owner, { mode: 'exclusive', version, permits: 0, askedAt: this.#now, versionAtAsk: undefined });
    if (version !== lock.version)
      found.push(violation('lock: versions grow', `${what}, after ${lock.version} was granted`));
    return found;
  }

  /**
   * K3. A waiter that was not granted the lock, or does not know of it yet, would hold the lock if its turn had come.
   *     Therefore a holder that excludes it was granted the lock out of turn. Readers may learn of one grant in any
   *     order: for them the versions decide.
   */
  #overtakes(
    lock: Lock,
    { what, version, waiter }: { readonly what: string; readonly version: number; readonly waiter: Waiter },
  ): readonly Finding[] {
    const found: Finding[] = [];
    for (const [owner, other] of lock.waiters) {
      if (other.queuedAt >= waiter.askedAt || mayBePutOut(lock, other)) continue;
      if (waiter.mode !== 'exclusive' && other.mode === waiter.mode) {
        other.overtakenBy = Math.min(other.overtakenBy, version);
      } else
        found.push(violation('lock: first come, first served', `${what}, and ${owner} had waited before it asked`));
    }
    if (waiter.overtakenBy < version) {
      const detail = `${what}, and one that asked when it was waiting got ${waiter.overtakenBy}`;
      found.push(violation('lock: first come, first served', detail));
    }
    return found;
  }

  /** K6. All current holders held the lock when the last of them was granted it, at some time since it asked. */
  #tooManyPermits({ holders, capacities, name }: Lock, what: string): readonly Finding[] {
    const all = [...holders.values()];
    const held = all.reduce((sum, { permits }) => sum + permits, 0);
    const last = all.reduce((a, b) => (b.version > a.version ? b : a));
    const most = Math.max(0, ...capacities.filter(({ to }) => to >= last.askedAt).map(({ capacity }) => capacity));
    if (held <= most) return NOTHING;
    return [violation('lock: permits', `${what}, and with it ${held} permits of ${name} are held, which has ${most}`)];
  }

  #lock(name: string): Lock {
    let lock = this.#locks.get(name);
    if (lock === undefined) {
      lock = {
        name,
        waiters: new Map(),
        gone: new Map(),
        holders: new Map(),
        modes: new Map(),
        capacities: [],
        version: 0,
        accepted: 0,
      };
      this.#locks.set(name, lock);
    }
    return lock;
  }
}

/** K3. */
function mayBePutOut({ capacities }: Lock, { permits, queuedAt }: Waiter): boolean {
  return capacities.some(({ capacity, to }) => capacity < permits && to >= queuedAt);
}

/** K2. `floor`: the highest version known when it asked. */
function newVersion(
  { modes }: Lock,
  grant: { readonly what: string; readonly mode: LockMode; readonly version: number; readonly floor: number },
): readonly Finding[] {
  const { mode, version, floor, what } = grant;
  const known = modes.get(version);
  modes.set(version, mode);
  assert(modes.size <= VERSIONS_MAX, 'a lock is granted as often as can be remembered');
  if (known !== undefined && (known === 'exclusive' || mode === 'exclusive')) {
    return [violation('lock: versions grow', `${what}: another grant has that version`)];
  }
  const shares = known === mode && version === floor;
  if (version > floor || shares) return NOTHING;
  return [violation('lock: versions grow', `${what}, and ${floor} was granted before it asked`)];
}

/** K4. */
function accept(lock: Lock, { owner, version }: Extract<LockEvent, { type: 'accepted' }>): readonly Finding[] {
  const before = lock.accepted;
  lock.accepted = Math.max(before, version);
  if (version >= before) return NOTHING;
  const detail = `a write of ${owner} under ${lock.name} was accepted with version ${version}, after one with ${before}`;
  return [violation('lock: fencing', detail)];
}
