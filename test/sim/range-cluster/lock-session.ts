/**
 * A client's session for locks, and its requests through any gateway that is up.
 *
 * LS1. The client relies on a session until (send time of the last acknowledged keep-alive) + TTL. Until then no node
 *      may report it as gone. Once it has lapsed, the client does not rely on it again, even if a late answer says that
 *      it is alive.
 */
import type { RangeBackend, RequestTerms } from '@remora/gateway';
import type { LockCommand, LockQuery, LockQueryResult, LockResult } from '@remora/lock';
import type { Command, CommandResult, Query, QueryResult } from '@remora/protocol';
import type { RangeCluster } from './bed.ts';

const TTL_MS = 1_500;
const KEEP_ALIVE_MS = 300;
const TIMEOUT_MS = 1_500;
/** An answer that is this late is lost, together with its gateway. */
const LOST_MS = 1_500;
/** The first id, above those of other clients. */
const FIRST_ID = 2_000n;

/** If neither is set, the answer is lost or the outcome is unknown. */
export interface Told<Result> {
  readonly result?: Result;
  readonly code?: string;
}

export class LockSessions {
  readonly bed: RangeCluster;
  readonly faults: string[] = [];
  #opened = 0n;

  constructor(bed: RangeCluster) {
    this.bed = bed;
  }

  get nowMs(): number {
    return this.bed.clock.monotonicMs();
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.bed.clock.setTimer(ms, resolve));
  }

  /** Undefined: no gateway answered. */
  async open(): Promise<LockSession | undefined> {
    const sentMs = this.nowMs;
    const id = FIRST_ID + this.#opened++;
    const { result } = await this.#command({ type: 'leaseGrant', id, ttlMs: TTL_MS, attributes: {} });
    if (result?.type !== 'leaseGrant') return undefined;
    return new LockSession(this, { lease: id, incarnation: result.incarnation }, sentMs);
  }

  async lock(command: LockCommand, waitMs?: number): Promise<Told<LockResult>> {
    const { result, code } = await this.#command({ type: 'lock', command }, waitMs);
    if (result?.type === 'lock') return { result: result.result };
    return code === undefined || code === 'UNKNOWN_OUTCOME' ? {} : { code };
  }

  async look(query: LockQuery): Promise<LockQueryResult | undefined> {
    const { result } = await this.ask({ type: 'lock', query });
    return result?.type === 'lock' ? result.result : undefined;
  }

  ask(query: Query): Promise<Told<QueryResult>> {
    return this.#once<QueryResult>(TIMEOUT_MS + LOST_MS, (backend, done) =>
      backend.query(query, { timeoutMs: TIMEOUT_MS }, (error, reply) => done(reply?.result, error?.code)),
    );
  }

  #command(command: Command, waitMs?: number): Promise<Told<CommandResult>> {
    const options: RequestTerms = { timeoutMs: TIMEOUT_MS, ...(waitMs === undefined ? {} : { waitMs }) };
    return this.#once<CommandResult>(TIMEOUT_MS + LOST_MS + (waitMs ?? 0), (backend, done) =>
      backend.command(command, options, (error, reply) => done(reply?.result, error?.code)),
    );
  }

  #once<Result>(
    patienceMs: number,
    send: (backend: RangeBackend, done: (result: Result | undefined, code: string | undefined) => void) => unknown,
  ): Promise<Told<Result>> {
    return new Promise((resolve) => {
      const timer = this.bed.clock.setTimer(patienceMs, () => resolve({}));
      const up = [...this.bed.nodes.values()].filter(({ running }) => running !== undefined);
      const backend = up[this.bed.random.int(Math.max(1, up.length))]?.running?.backend;
      if (backend === undefined) return;
      send(backend, (result, code) => {
        timer.cancel();
        resolve({ ...(result === undefined ? {} : { result }), ...(code === undefined ? {} : { code }) });
      });
    });
  }
}

export class LockSession {
  readonly ref: { readonly lease: bigint; readonly incarnation: number };
  /** Its client renews it no longer, or learned that it is gone. */
  over = false;
  readonly #sessions: LockSessions;
  #validUntilMs: number;

  constructor(sessions: LockSessions, ref: LockSession['ref'], sentMs: number) {
    this.#sessions = sessions;
    this.ref = ref;
    this.#validUntilMs = sentMs + TTL_MS;
    this.#keepAlive();
  }

  /** LS1. */
  get valid(): boolean {
    return this.#sessions.nowMs < this.#validUntilMs;
  }

  /** Its client requests its end. */
  giveUp(): void {
    this.over = true;
    this.#validUntilMs = 0;
  }

  /** A node reported that it is gone. */
  gone(who: string): void {
    const { faults, nowMs } = this.#sessions;
    if (this.valid) faults.push(`LS1: ${who} found ${this.ref.lease} gone ${this.#validUntilMs - nowMs} ms early`);
    this.over = true;
  }

  #keepAlive(): void {
    if (this.over || !this.valid) return;
    const sentMs = this.#sessions.nowMs;
    const { lease: id, incarnation } = this.ref;
    void this.#sessions.ask({ type: 'leaseKeepAlive', id, incarnation }).then(({ result, code }) => {
      if (code === 'LEASE_NOT_FOUND') this.gone('a keep-alive');
      else if (result !== undefined && !this.over && this.valid) {
        this.#validUntilMs = Math.max(this.#validUntilMs, sentMs + TTL_MS);
      }
    });
    this.#sessions.bed.clock.setTimer(KEEP_ALIVE_MS, () => this.#keepAlive());
  }
}
