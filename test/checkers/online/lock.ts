/**
 * Whether locks exclude, by what those know who use them (design §15). Events come in the order of real time.
 *
 * Promises:
 * K1. One holder: from `granted` to `left` an owner shares the lock with nobody, or only with readers if it reads, or
 *     only with others who have permits.
 * K2. Versions grow: a grant has a higher version than every grant that was known when it was asked for, and a version
 *     of its own; readers may share one.
 * K3. First come, first served: who was in the queue before another asked is granted before him. Not of who asked for
 *     more permits than a semaphore had meanwhile: it is refused then, and where it does not hear of that it asks
 *     again.
 * K4. Fencing: of the writes that a resource accepts, none has a lower version than one before.
 * K5. Whoever asks is answered: at the end nobody waits.
 * K6. Permits: when a holder was granted its permits, those of all holders together were no more than the semaphore
 *     had.
 * K7. Who goes on with a grant that was its own before has the same version, and nobody was granted the lock since.
 *
 * An owner is one acquire: who asks again after it left is another owner. `granted` again without `left` between is a
 * re-entry, or a change of the mode, before which it says that it is `converting`.
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
      /** Of a semaphore. */
      readonly permits?: number;
    }
  /** It is known to wait in the lock's queue. */
  | { readonly type: 'queued'; readonly lock: string; readonly owner: string }
  /**
   * It will wait no longer, or may be taken out of the queue from now on: canceled, timed out, session at its end. It
   * may have been granted the lock before that, and hear of it later.
   */
  | { readonly type: 'gone'; readonly lock: string; readonly owner: string }
  | {
      readonly type: 'granted';
      readonly lock: string;
      readonly owner: string;
      readonly mode: LockMode;
      readonly version: number;
      /** Of a semaphore. */
      readonly permits?: number;
    }
  /** An owner that has left relies on its grant again: another process goes on with what it held. */
  | { readonly type: 'resumed'; readonly lock: string; readonly owner: string; readonly version: number }
  /** It asks for the lock in another way: it relies on a share of it only, until it is granted again. */
  | { readonly type: 'converting'; readonly lock: string; readonly owner: string }
  /** A semaphore may have this many permits from now on; once that is `settled` it has no other number. */
  | { readonly type: 'capacity'; readonly lock: string; readonly capacity: number; readonly settled: boolean }
  /** It relies on the lock no longer: before the release is sent, when the loss is noticed, when the client dies. */
  | { readonly type: 'left'; readonly lock: string; readonly owner: string }
  /** What the lock protects accepted a write under this version. */
  | { readonly type: 'accepted'; readonly lock: string; readonly owner: string; readonly version: number };

interface Waiter {
  readonly mode: LockMode;
  readonly permits: number;
  /** The highest version known when it asked. */
  readonly versionAtAsk: number;
  readonly askedAt: number;
  /** When it was known to be in the queue. */
  queuedAt: number;
  /** The lowest version of those who asked when it was in the queue, and were granted since. */
  overtakenBy: number;
}

interface Holder {
  mode: LockMode;
  version: number;
  readonly permits: number;
  /** When it asked, and the highest version known then: for the grant, or for its change. */
  askedAt: number;
  versionAtAsk: number | undefined;
}

/** How many permits a semaphore may have had, and since and until when. */
interface Capacity {
  readonly capacity: number;
  readonly from: number;
  to: number;
}

interface Lock {
  readonly name: string;
  readonly waiters: Map<string, Waiter>;
  /** Who is gone, and was not granted the lock as far as is known. */
  readonly gone: Map<string, Waiter>;
  readonly holders: Map<string, Holder>;
  /** By version: how it was granted. */
  readonly modes: Map<number, LockMode>;
  readonly capacities: Capacity[];
  /** The highest one granted, and the highest one under which a write was accepted. */
  version: number;
  accepted: number;
}

const NEVER = Number.POSITIVE_INFINITY;
/** Versions to remember per lock, to see one given twice; more are a mistake of the test. */
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

  /** K1, K7. Of a lock that is held alone. */
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
   * K3. A waiter that was not granted, or does not know of it yet, would hold the lock if its turn had come; so whoever
   * excludes it came out of turn. Readers may hear of one grant in any order: there the versions tell.
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

  /** K6. All who hold now held when the last of them was granted: some time since it asked. */
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
