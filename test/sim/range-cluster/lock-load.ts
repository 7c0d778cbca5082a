/**
 * Clients that hold sessions and acquire locks.
 *
 * LL1. While a client holds a lock, and believes its session to be alive, no other client gets the lock.
 * LL2. No two grants have the same version.
 * LL3. A session that is renewed in time is never reported as gone. A session that is not renewed is gone in the end,
 *      and so are its locks.
 * LL4. A waiting acquire is answered no later than its time-out.
 */
import type { Random } from '@remora/base';
import type { RangeBackend } from '@remora/gateway';
import type { LockCommand, LockId } from '@remora/lock';
import type { RangeCluster } from './bed.ts';

interface Session {
  readonly id: bigint;
  readonly incarnation: number;
  /** By the client's reckoning: send time of the last acknowledged keep-alive, and the TTL. */
  validUntilMs: number;
  over: boolean;
}

interface Hold {
  readonly lock: string;
  readonly version: number;
  readonly fromMs: number;
  /** When the release was sent, or when the session was no longer known to be alive. */
  toMs: number;
  readonly session: Session;
}

const TTL_MS = 1_500;
const ANSWER_MAX_MS = 25_000;

export class LockLoad {
  readonly #bed: RangeCluster;
  readonly #random: Random;
  readonly #holds: Hold[] = [];
  readonly faults: string[] = [];
  #ids = 1;
  granted = 0;
  timedOut = 0;

  constructor(bed: RangeCluster) {
    this.#bed = bed;
    this.#random = bed.random;
  }

  get #nowMs(): number {
    return this.#bed.clock.monotonicMs();
  }

  client(untilMs: number): void {
    this.#bed.clock.setTimer(this.#random.int(100), () => this.#openSession(untilMs));
  }

  #later(ms: number, fn: () => void): void {
    this.#bed.clock.setTimer(ms, fn);
  }

  /** Some gateway, and a function that tells whether it is still the same process. Only then an answer counts. */
  #gateway(): { readonly backend: RangeBackend; readonly alive: () => boolean } | undefined {
    const up = [...this.#bed.nodes.values()].filter((node) => node.running !== undefined);
    const node = up[this.#random.int(Math.max(1, up.length))];
    if (node?.running === undefined) return undefined;
    const { life } = node;
    return { backend: node.running.backend, alive: () => node.life === life };
  }

  #openSession(untilMs: number): void {
    if (this.#nowMs >= untilMs) return;
    const gateway = this.#gateway();
    if (gateway === undefined) return this.#later(100, () => this.#openSession(untilMs));
    const sentMs = this.#nowMs;
    let over = false;
    const give = (): void => {
      if (over) return;
      over = true;
      this.#later(50, () => this.#openSession(untilMs));
    };
    this.#later(3_000, give);
    const id = BigInt(++this.#ids);
    gateway.backend.command(
      { type: 'leaseGrant', id, ttlMs: TTL_MS, attributes: {} },
      { timeoutMs: 2_000 },
      (_error, reply) => {
        if (over) return;
        if (reply?.result.type !== 'leaseGrant') return give();
        over = true;
        const { incarnation } = reply.result;
        const session = { id, incarnation, validUntilMs: sentMs + TTL_MS, over: false };
        this.#keepAlive(session, untilMs);
        this.#work(session, untilMs, 1);
      },
    );
  }

  #keepAlive(session: Session, untilMs: number): void {
    if (session.over || this.#nowMs >= untilMs) return;
    const sentMs = this.#nowMs;
    const gateway = this.#gateway();
    const { id, incarnation } = session;
    gateway?.backend.query({ type: 'leaseKeepAlive', id, incarnation }, { timeoutMs: 600 }, (error, reply) => {
      if (reply !== undefined) {
        if (!session.over) session.validUntilMs = Math.max(session.validUntilMs, sentMs + TTL_MS);
      } else if (error?.code === 'LEASE_NOT_FOUND') this.#gone(session, 'a keep-alive');
    });
    this.#later(300, () => this.#keepAlive(session, untilMs));
  }

  /** LL3. */
  #gone(session: Session, what: string): void {
    if (this.#nowMs < session.validUntilMs) {
      this.faults.push(`${what} found session ${session.id} gone ${session.validUntilMs - this.#nowMs} ms early`);
    }
    session.over = true;
  }

  #work(session: Session, untilMs: number, attempt: number): void {
    if (session.over || this.#nowMs >= untilMs || this.#nowMs >= session.validUntilMs) {
      session.over = true;
      return this.#openSession(untilMs);
    }
    const gateway = this.#gateway();
    if (gateway === undefined) return this.#later(50, () => this.#work(session, untilMs, attempt));
    const lock: LockId = { namespace: 'sim', name: Buffer.from(`lock${this.#random.int(2)}`) };
    const owner = { session: { lease: session.id, incarnation: session.incarnation }, token: 't' };
    const command: LockCommand = {
      type: 'acquire',
      lock,
      owner,
      wait: this.#random.int(4) > 0,
      waitUntilMs: 0,
      deadlineMs: 0,
      attempt,
      depthMax: 1,
      data: Buffer.alloc(0),
    };
    const waitMs = 200 + this.#random.int(3_000);
    let answered = false;
    const go = (): void => this.#later(this.#random.int(50), () => this.#work(session, untilMs, attempt + 1));
    const abandon = (): void => {
      // The answer is lost: its grant, if any, ends with the session.
      session.over = true;
      this.#later(10, () => this.#openSession(untilMs));
    };
    const startMs = this.#nowMs;
    const watch = (): void => {
      if (answered) return;
      if (!gateway.alive()) {
        answered = true;
        return abandon();
      }
      if (this.#nowMs - startMs > ANSWER_MAX_MS) {
        answered = true;
        this.faults.push('an acquire was never answered');
        return;
      }
      this.#later(100, watch);
    };
    this.#later(100, watch);
    gateway.backend.command({ type: 'lock', command }, { timeoutMs: 1_500, waitMs }, (error, reply) => {
      if (answered) return;
      answered = true;
      if (reply?.result.type !== 'lock') {
        // It failed for certain, or its outcome is unknown: a new session resolves the doubt.
        if (error?.code === 'UNKNOWN_OUTCOME') return abandon();
        return go();
      }
      const { result } = reply.result;
      if (result.type === 'granted')
        return this.#hold(session, { lock, owner, version: result.version, attempt }, untilMs);
      if (result.type === 'refused') {
        if (result.code === 'SESSION_EXPIRED') {
          this.#gone(session, 'an acquire');
          return this.#later(10, () => this.#openSession(untilMs));
        }
        if (result.code === 'LOCK_TIMEOUT') this.timedOut++;
        // A release whose answer is lost may still be in progress.
        else if (result.code !== 'LOCK_CANCELED' && result.code !== 'LOCK_DEPTH_EXCEEDED')
          this.faults.push(`an acquire was refused: ${result.code}`);
      }
      go();
    });
  }

  #hold(
    session: Session,
    {
      lock,
      owner,
      version,
      attempt,
    }: {
      readonly lock: LockId;
      readonly owner: Extract<LockCommand, { type: 'acquire' }>['owner'];
      readonly version: number;
      readonly attempt: number;
    },
    untilMs: number,
  ): void {
    if (this.#nowMs >= session.validUntilMs) {
      // LL1. A grant is not used if it arrives after the session's end by the client's own reckoning. The SDK does the
      //      same.
      session.over = true;
      return this.#later(10, () => this.#openSession(untilMs));
    }
    this.granted++;
    const name = Buffer.from(lock.name).toString();
    const hold: Hold = { lock: name, version, fromMs: this.#nowMs, toMs: Number.POSITIVE_INFINITY, session };
    this.#holds.push(hold);
    this.#checkVersions(hold);
    if (this.#random.int(8) === 0) {
      // Forgets everything: the session expires, and the lock is released with it.
      hold.toMs = session.validUntilMs;
      session.over = true;
      return this.#later(10, () => this.#openSession(untilMs));
    }
    this.#later(20 + this.#random.int(500), () => {
      hold.toMs = Math.min(this.#nowMs, session.validUntilMs);
      const command: LockCommand = { type: 'release', lock, owner, all: false, deadlineMs: 0, attempt };
      const next = (): void => this.#work(session, untilMs, attempt + 1);
      const gateway = this.#gateway();
      let answered = false;
      const once = (): void => {
        if (answered) return;
        answered = true;
        this.#later(this.#random.int(30), next);
      };
      this.#later(2_500, once);
      gateway?.backend.command({ type: 'lock', command }, { timeoutMs: 1_000 }, once);
    });
  }

  #checkVersions(hold: Hold): void {
    for (const other of this.#holds) {
      if (other === hold || other.lock !== hold.lock) continue;
      // A second answer to one acquire must report the same grant.
      if (other.version === hold.version) this.faults.push(`version ${hold.version} of ${hold.lock} was granted twice`);
      const otherEndsMs = Math.min(other.toMs, other.session.validUntilMs);
      if (other.fromMs <= hold.fromMs && otherEndsMs > hold.fromMs) {
        this.faults.push(`${hold.lock} was granted as ${hold.version} while version ${other.version} was held`);
      }
    }
  }

  check(): readonly string[] {
    return this.faults;
  }
}
