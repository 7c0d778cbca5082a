/**
 * Clients of a cluster that loses majorities. One at a time, they acquire locks, some in the range that stores the
 * leases and some in another range.
 *
 * LV1. If an acquire begins when another grant of the lock is known, its grant has a higher version than that one,
 *      whatever was lost.
 * LV2. No client is granted a lock while another client relies on it. Exception: the lock's range, or the range of its
 *      lease, lost its majority, and the other client relies on a grant from before the cluster recovered from that.
 * LV3. In the end each lock can be granted again, whatever the home of a lease or the range of a lock forgot about it.
 */
import { lockSpan } from '@remora/lock';
import type { HeldLock } from 'remora';
import type { ScheduledCluster } from '../cluster/scheduled-cluster.ts';
import { type ClientLife, lifeOf, SESSION_TTL_MS } from '../cluster/sdk-client.ts';
import { ask } from '../cluster/workloads/ask.ts';
import { Violation } from '../common/violation.ts';

/** The second lock is not in the range that stores the leases. */
const LOCKS: readonly string[] = ['a', 'n'];
/** The start key of that lock's range. */
export const LOCK_BORDER: Buffer = routingKeyOf('m');
/** The start key of the lease records. */
const LEASES = Buffer.from([1]);
const WAIT_MS = 3_000;
/** Includes the answers that a loss causes: the lock or the lease is unknown. */
const ANSWERS = ['SESSION_EXPIRED', 'LEASE_NOT_FOUND', 'LOCK_TIMEOUT', 'LOCK_NOT_HELD', 'LOCK_CANCELED'] as const;

interface Hold {
  readonly lock: string;
  readonly held: HeldLock;
  readonly before: boolean;
}

export class Locks {
  readonly #cluster: ScheduledCluster;
  /** Whether the cluster has recovered from its loss. */
  readonly #isOver: () => boolean;
  /** By lock: the holds that clients rely on. */
  readonly #holds = new Map<string, Set<Hold>>();
  /** By lock: the highest known version. */
  readonly #newest = new Map<string, number>();
  /** Locks that two clients relied on at once. A loss may explain that. */
  readonly #shared = new Set<string>();
  granted = 0;

  constructor(cluster: ScheduledCluster, isOver: () => boolean) {
    this.#cluster = cluster;
    this.#isOver = isOver;
  }

  /** Acquires one lock after the other until the clients rest. */
  async work(life: ClientLife): Promise<void> {
    const { world } = this.#cluster;
    while (!world.resting) {
      const lock = LOCKS[life.random.int(LOCKS.length)] ?? '';
      await this.#once(life, lock, WAIT_MS);
      await pause(life, life.random.int(300));
    }
  }

  /**
   * Uses a new session each time. The session is closed afterwards, or left to expire. Returns whether the lock was
   * granted.
   */
  async #once(life: ClientLife, lock: string, wait: number): Promise<boolean> {
    const { world } = this.#cluster;
    const opened = await ask({ world, life, what: 'session' }, () => life.remora.session({ ttl: SESSION_TTL_MS }));
    if (opened.type !== 'answer') return false;
    const session = opened.value;
    const floor = this.#newest.get(lock) ?? 0;
    const asked = await ask({ world, life, what: `lock ${lock}` }, () => session.lock(lock).acquire({ wait }), ANSWERS);
    if (asked.type === 'answer') await this.#hold(life, lock, floor, asked.value);
    await ask({ world, life, what: 'end of session' }, () => session.close(), ANSWERS);
    return asked.type === 'answer';
  }

  async #hold(life: ClientLife, lock: string, floor: number, held: HeldLock): Promise<void> {
    const { world } = this.#cluster;
    const { version } = held;
    if (version <= floor) throw new Violation('versions grow', `${lock} got ${version}, and ${floor} was known before`);
    this.#newest.set(lock, Math.max(version, this.#newest.get(lock) ?? 0));
    this.granted++;
    const hold = { lock, held, before: !this.#isOver() };
    this.#rely(hold);
    await pause(life, life.random.int(800));
    this.#holds.get(lock)?.delete(hold);
    if (life.random.int(2) === 0) await ask({ world, life, what: `release ${lock}` }, () => held.release(), ANSWERS);
  }

  /** LV2. */
  #rely(hold: Hold): void {
    const { lock, held } = hold;
    const others = this.#holds.get(lock) ?? new Set();
    this.#holds.set(lock, others.add(hold));
    for (const other of others) {
      if (other === hold || other.held.state !== 'active' || held.state !== 'active') continue;
      if (!other.before) throw alone(lock);
      this.#shared.add(lock);
    }
  }

  /** LV2. `isLost`: whether a key's range had lost its majority. */
  check(isLost: (key: Uint8Array) => boolean): void {
    for (const lock of this.#shared) if (!isLost(routingKeyOf(lock)) && !isLost(LEASES)) throw alone(lock);
  }

  /** LV3. `isBeyondHelp`: whether a key's range is unrecoverable. */
  async usable(boundMs: number, isBeyondHelp: (key: Uint8Array) => boolean): Promise<void> {
    if (isBeyondHelp(LEASES)) return;
    const missing = new Set(LOCKS.filter((lock) => !isBeyondHelp(routingKeyOf(lock))));
    const life = lifeOf(this.#cluster.world.clientAt(0));
    const take = async (lock: string): Promise<void> => {
      while (!(await this.#once(life, lock, WAIT_MS)));
      missing.delete(lock);
    };
    for (const lock of missing) take(lock).catch((error: unknown) => this.#cluster.world.fail(error));
    await this.#cluster.until(boundMs, 'every lock is granted', () => [...missing].join(', '));
  }
}

function alone(lock: string): Violation {
  return new Violation('one holder', `two rely on ${lock}`);
}

function routingKeyOf(name: string): Buffer {
  return Buffer.from(lockSpan({ namespace: 'default', name: Buffer.from(name) }).start);
}

function pause({ clock }: ClientLife, ms: number): Promise<void> {
  return new Promise((resolve) => clock.setTimer(ms, resolve));
}
