/**
 * Clients that write under locks. Their transactions compare the version of their grant, and have keys in ranges other
 * than the lock's. Some clients continue to write after they released or lost the lock.
 *
 * FL1. Everything that is written under a grant has a revision between the grant's version and that of the next grant.
 * FL2. Therefore a key's value never comes from an older grant than the key's previous value.
 * FL3. A transaction writes all of its keys at one revision, or none.
 * FL4. While a client holds the lock by its own reckoning, none of its transactions is refused because it does not hold
 *      the lock.
 */
import type { Random } from '@remora/base';
import type { LockCommand, LockId, Owner } from '@remora/lock';
import type { Command, KvEvent } from '@remora/protocol';
import { put, range } from '../../../packages/dataserver/test/support/state-bed.ts';
import type { RangeCluster } from './bed.ts';
import { type LockSession, LockSessions } from './lock-session.ts';
import { Requests } from './requests.ts';

/** Each lock has separate keys, on both sides of every border between plain keys. */
const FENCED_LOCKS: readonly string[] = ['f0', 'f1', 'f2', 'f3'];
const KEY_GROUPS = ['j', 'n', 'r'];
const WAIT_MS = 2_500;
const WRITES_MAX = 4;

interface Grant {
  readonly lock: string;
  readonly version: number;
  readonly session: LockSession;
  readonly owner: Owner;
  readonly attempt: number;
  /** Its client has begun to release it. */
  ended: boolean;
}

export class FenceLoad {
  readonly #random: Random;
  readonly #sessions: LockSessions;
  readonly #requests: Requests;
  readonly #faults: string[] = [];
  /** Versions of the grants that clients received, by lock. */
  readonly #versions = new Map<string, Set<number>>(FENCED_LOCKS.map((lock) => [lock, new Set()]));
  /** By the value that the transaction wrote. */
  readonly #written = new Map<string, { readonly keys: readonly string[]; readonly revision: number }>();
  #tokens = 0;
  #values = 0;
  readonly figures = { granted: 0, written: 0, 'refused as stale': 0, unknown: 0 };

  constructor(bed: RangeCluster) {
    this.#random = bed.random;
    this.#sessions = new LockSessions(bed);
    this.#requests = new Requests(bed);
  }

  async client(untilMs: number): Promise<void> {
    while (this.#sessions.nowMs < untilMs) {
      const session = await this.#sessions.open();
      for (let attempt = 1; session?.valid && !session.over && this.#sessions.nowMs < untilMs; attempt++) {
        await this.#use(session, attempt);
        await this.#sessions.sleep(this.#random.int(40));
      }
      if (session !== undefined) session.over = true;
      await this.#sessions.sleep(50);
    }
  }

  async #use(session: LockSession, attempt: number): Promise<void> {
    const grant = await this.#acquire(session, attempt);
    if (grant === undefined) return;
    for (let left = this.#random.int(WRITES_MAX); left > 0; left--) {
      await this.#write(grant);
      await this.#sessions.sleep(this.#random.int(60));
    }
    const late = this.#random.int(3) > 0 ? this.#writeLate(grant) : Promise.resolve();
    await this.#sessions.sleep(this.#random.int(12));
    await this.#letGo(grant);
    await late;
  }

  async #letGo(grant: Grant): Promise<void> {
    const { session } = grant;
    grant.ended = true;
    switch (this.#random.int(8)) {
      case 0:
        session.over = true; // The session expires, and the lock with it.
        return;
      case 1:
      case 2:
        return this.#revoke(session);
      default:
        return this.#release(grant);
    }
  }

  #revoke(session: LockSession): Promise<void> {
    session.giveUp();
    const { lease: id, incarnation } = session.ref;
    return new Promise((resolve) => {
      this.#requests.command({ type: 'leaseRevoke', id, incarnation }, 2_000, () => resolve());
    });
  }

  async #acquire(session: LockSession, attempt: number): Promise<Grant | undefined> {
    const lock = FENCED_LOCKS[this.#random.int(FENCED_LOCKS.length)] ?? '';
    const owner = { session: session.ref, token: `t${++this.#tokens}` };
    const command: LockCommand = {
      ...{ type: 'acquire', lock: lockId(lock), owner, wait: true, waitUntilMs: 0, deadlineMs: 0 },
      ...{ attempt, depthMax: 1, data: Buffer.alloc(0) },
    };
    const { result } = await this.#sessions.lock(command, WAIT_MS);
    if (result?.type === 'refused' && result.code === 'SESSION_EXPIRED') session.gone('an acquire');
    if (result === undefined) void this.#revoke(session); // This also ends whatever the acquire may have done.
    if (result?.type !== 'granted') return undefined;
    this.figures.granted++;
    this.#versions.get(lock)?.add(result.version);
    return { lock, version: result.version, session, owner, attempt, ended: false };
  }

  async #release({ lock, owner, attempt, session }: Grant): Promise<void> {
    const release: LockCommand = { type: 'release', lock: lockId(lock), owner, all: true, deadlineMs: 0, attempt };
    const { result } = await this.#sessions.lock(release);
    if (result === undefined) void this.#revoke(session);
  }

  /** Writes during the release and afterwards, like a process that was frozen while it held the lock. */
  async #writeLate(grant: Grant): Promise<void> {
    for (let left = 1 + this.#random.int(3); left > 0; left--) {
      await this.#write(grant);
      await this.#sessions.sleep(this.#random.int(300));
    }
  }

  #write(grant: Grant): Promise<void> {
    const { lock, version } = grant;
    const keys = KEY_GROUPS.filter(() => this.#random.int(2) === 0).map((group) => `${group}${lock}`);
    const value = `${version} ${++this.#values}`;
    const txn = {
      compare: [{ lock: lockId(lock), version }],
      success: keys.map((key) => put(key, value)),
      failure: [range(`${KEY_GROUPS[0]}${lock}`)],
    };
    const command: Command = { type: 'txn', txn };
    return new Promise((resolve) => {
      this.#requests.command(command, 500 + this.#random.int(2_000), (error, reply) => {
        if (error?.code === 'UNKNOWN_OUTCOME') this.figures.unknown++;
        if (reply?.result.type === 'txn') this.#told(grant, { keys, value }, reply.result.succeeded, reply.revision);
        resolve();
      });
    });
  }

  #told(
    grant: Grant,
    { keys, value }: { readonly keys: readonly string[]; readonly value: string },
    succeeded: boolean,
    revision: number,
  ): void {
    if (succeeded) {
      this.figures.written++;
      this.#written.set(value, { keys, revision });
      return;
    }
    this.figures['refused as stale']++;
    // FL4. It was valid when the answer arrived, and therefore all the time before.
    if (grant.ended || grant.session.over || !grant.session.valid) return;
    this.#faults.push(`FL4: ${grant.lock} is held by version ${grant.version}, and a write under it was refused`);
  }

  /** Checks the history of all keys, in the order of revisions. */
  check(events: readonly KvEvent[]): readonly string[] {
    const faults = [...this.#faults, ...this.#sessions.faults, ...this.#requests.faults];
    const newest = new Map<string, number>();
    const revisions = new Map<string, Set<number>>();
    for (const { kv } of events) {
      const key = Buffer.from(kv.key).toString();
      const value = Buffer.from(kv.value).toString();
      const version = Number(value.split(' ')[0]);
      revisions.set(value, (revisions.get(value) ?? new Set()).add(kv.modRevision));
      faults.push(...this.#misplaced(key.slice(1), version, kv.modRevision));
      const before = newest.get(key) ?? 0;
      if (version < before) faults.push(`FL2: ${key} was written under version ${before}, and then under ${version}`);
      newest.set(key, Math.max(before, version));
    }
    for (const [value, at] of revisions) {
      if (at.size > 1) faults.push(`FL3: ${value} was written at the revisions ${[...at].join()}`);
    }
    for (const [value, { keys, revision }] of this.#written) {
      const there = revisions.get(value) ?? new Set();
      if (keys.length > 0 && !there.has(revision)) faults.push(`FL3: ${value} was acknowledged, and is not in history`);
    }
    return faults;
  }

  /** FL1. */
  #misplaced(lock: string, version: number, revision: number): readonly string[] {
    if (revision <= version) return [`FL1: ${lock} was granted by version ${version}, after a write under it`];
    const next = [...(this.#versions.get(lock) ?? [])].find((other) => other > version && other < revision);
    if (next === undefined) return [];
    return [`FL1: a write under version ${version} of ${lock} has revision ${revision}, behind the grant ${next}`];
  }
}

function lockId(name: string): LockId {
  return { namespace: 'sim', name: Buffer.from(name) };
}
