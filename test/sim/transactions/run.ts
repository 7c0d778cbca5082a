/**
 * One run: clients append to lists and read them, in transactions over several ranges and over one. Their coordinators
 * may stop anywhere, and ranges and masters move (../revisions/world.ts). Then all faults end.
 *
 * X1. All answers that clients received are strictly serializable, and each request is applied once.
 * X2. After all faults have ended, every request ends, and no range has anything left of a transaction.
 * X3. Each range emits its events in the order of revisions, and none at or below a revision that it has reported as
 *     closed.
 */
import type { ServiceError } from '@remora/base';
import { range } from '../../../packages/dataserver/test/support/state-bed.ts';
import { checkTransactions, type OpenTxn, TxnRecorder } from '../../checkers/index.ts';
import { RANGES, World } from '../revisions/world.ts';
import { type Answered, Calls, DEADLINE_MS } from './calls.ts';
import { type Ended, type FlatTxn, SimCoordinator } from './coordinator.ts';
import { EventOrder } from './event-order.ts';
import { comparesOf, type ListAccess, listIn, numbered, opsOf, performed, txnOf } from './lists.ts';

const CLIENTS = 8;
const KEYS = RANGES.flatMap(({ first }) => [`${first}1`, `${first}2`]);
const ROUGH_MS = 6_000;
const CALM_MS = 6_000;
/** Some expire while their coordinators work on them. */
const EXPIRES_MS = [150, 400, 1_000];
const PATIENCE = 20;

export interface RunResult {
  readonly faults: readonly string[];
  readonly commits: number;
  readonly conflicts: number;
  readonly deaths: number;
  readonly snapshots: number;
  readonly remembered: number;
}

export async function runSeed(seed: number): Promise<RunResult> {
  return new Run(seed).result();
}

class Run {
  readonly #world: World;
  readonly #calls: Calls;
  readonly #recorder: TxnRecorder;
  readonly #order: EventOrder;
  readonly #faults: string[] = [];
  readonly #counts = { commits: 0, conflicts: 0, deaths: 0, snapshots: 0, remembered: 0 };
  #ids = 0;
  #moments = 0;
  #open = 0;
  #ending = false;

  constructor(seed: number) {
    const peers: { calls?: Calls } = {};
    this.#world = new World(seed, () => {}, {
      push: (txn, done) => peers.calls?.peers.push(txn, done),
      resolve: (command, done) => peers.calls?.peers.resolve(command, done),
    });
    this.#calls = new Calls(this.#world);
    peers.calls = this.#calls;
    this.#recorder = new TxnRecorder(() => this.#nowNs());
    this.#order = new EventOrder(this.#world);
    for (let client = 0; client < CLIENTS; client++) void this.#client(client);
  }

  async result(): Promise<RunResult> {
    const world = this.#world;
    await world.run(ROUGH_MS);
    world.calmDown();
    await world.run(CALM_MS / 2);
    this.#ending = true;
    await world.run(CALM_MS);
    const verdict = checkTransactions(this.#recorder.records());
    if (verdict.result !== 'ok') this.#faults.push(`X1: ${verdict.result} ${verdict.explanation}`);
    if (this.#open > 0) this.#faults.push(`X2: ${this.#open} requests never end`);
    for (const node of world.nodes.values()) {
      for (const { rangeId, state } of node.replicas.values()) {
        if (state.transactions.size > 0)
          this.#faults.push(`X2: range ${rangeId} on node ${node.id} has a transaction left`);
      }
    }
    return { faults: [...this.#faults, ...this.#order.faults], ...this.#counts };
  }

  /** Returns a different time on each call. */
  #nowNs(): number {
    this.#moments++;
    return this.#world.clock.monotonicMs() * 1e6 + this.#moments;
  }

  async #client(client: number): Promise<void> {
    const { random } = this.#world;
    while (!this.#ending) {
      await this.#calls.pause(25);
      const kind = random.int(8);
      this.#open++;
      if (kind === 0) await this.#snapshot(client);
      else if (kind < 3) await this.#read(client, this.#someKey());
      else await this.#transact(client);
      this.#open--;
    }
  }

  #someKey(): string {
    return KEYS[this.#world.random.int(KEYS.length)] ?? 'a1';
  }

  // -------------------------------------------------------------------------------------------- reads

  /** Undefined: it was not answered. */
  async #read(client: number, key: string): Promise<readonly string[] | undefined> {
    const open = this.#recorder.begin({ c: client, ops: [{ k: key, op: 'get' }] });
    for (let attempt = 0; attempt < PATIENCE; attempt++) {
      const op = { ...range(key), type: 'range' as const };
      const answer = await this.#calls.query(this.#calls.rangeOf(key), { type: 'range', op, serializable: false });
      if (answer !== undefined && !(answer instanceof Error) && answer.result.type === 'range') {
        const list = listIn(answer.result);
        open.committed([list]);
        return list;
      }
    }
    open.aborted();
    return undefined;
  }

  /** All lists, as of one revision that every range has closed. */
  async #snapshot(client: number): Promise<void> {
    const open = this.#recorder.begin({ c: client, ops: KEYS.map((k) => ({ k, op: 'get' })) });
    const revision = await this.#calls.draw(RANGES.reduce((floor, { counted }) => Math.max(floor, counted), 0));
    const lists: (readonly string[])[] = [];
    for (const key of revision === undefined ? [] : KEYS) {
      const list = await this.#readAt(key, revision ?? 0);
      if (list === undefined) break;
      lists.push(list);
    }
    if (lists.length < KEYS.length) return open.aborted();
    this.#counts.snapshots++;
    open.committed(lists);
  }

  async #readAt(key: string, revision: number): Promise<readonly string[] | undefined> {
    const rangeId = this.#calls.rangeOf(key);
    for (let attempt = 0; attempt < PATIENCE; attempt++) {
      const closed = await this.#calls.query(rangeId, { type: 'closedRevision', revision });
      if (closed === undefined || closed instanceof Error || closed.result.type !== 'closedRevision') continue;
      if (closed.result.floor > revision) return undefined;
      const op = { ...range(key, undefined, { revision }), type: 'range' as const };
      const answer = await this.#calls.query(rangeId, { type: 'range', op, serializable: false });
      if (answer === undefined || answer instanceof Error || answer.result.type !== 'range') continue;
      return listIn(answer.result);
    }
    return undefined;
  }

  // -------------------------------------------------------------------------------------------- transactions

  async #transact(client: number): Promise<void> {
    const { random } = this.#world;
    const id = ++this.#ids;
    const keys = [...new Set(Array.from({ length: 1 + random.int(3) }, () => this.#someKey()))];
    const accesses: ListAccess[] = [];
    for (const key of keys) {
      const before = await this.#read(client, key);
      if (before === undefined) return;
      const appends = accesses.length === 0 || random.int(2) === 0;
      const nested = id % 2 === 0; // Not drawn, so that other runs stay the same.
      accesses.push({ key, before, nested, again: random.int(2) === 0, ...(appends && { element: `e${id}` }) });
    }
    const wanted = accesses.flatMap(({ key, element }) =>
      element === undefined ? [] : [{ k: key, op: 'append' as const, v: element }],
    );
    const open = this.#recorder.begin({ c: client, ops: wanted });
    const ranges = [...new Set(keys.map((key) => this.#calls.rangeOf(key)))];
    const deadlineMs = new Map(ranges.map((rangeId) => [rangeId, this.#calls.timeMs(rangeId) + DEADLINE_MS]));
    if (ranges.length === 1) return this.#inOneRange(accesses, `q${id}`, deadlineMs, open);
    const txn = { requestId: `q${id}`, compares: comparesOf(accesses), ops: opsOf(accesses), deadlineMs };
    const { commit, results } = await this.#commit(txn);
    this.#counts.commits++;
    if (results === undefined) this.#counts.remembered++;
    open.committedAs(performed(accesses, commit.branches.includes(0), results));
  }

  async #inOneRange(
    accesses: readonly ListAccess[],
    requestId: string,
    deadlines: ReadonlyMap<number, number>,
    open: OpenTxn,
  ): Promise<void> {
    for (const [rangeId, deadlineMs] of deadlines) {
      const command = { type: 'txn', txn: txnOf(accesses) } as const;
      const answer = await this.#calls.command(rangeId, command, { requestId, deadlineMs }, () => true);
      if (answer instanceof Error) return this.#unexpected(answer, open);
      const { result } = answer as Answered;
      if (result.type !== 'txn') return;
      open.committedAs(performed(accesses, result.succeeded, numbered(accesses, result.succeeded, result.results)));
    }
  }

  /** Repeats attempts under the same request id. When one coordinator stops, the next one continues. */
  async #commit(txn: FlatTxn): Promise<Extract<Ended, { type: 'committed' }>> {
    for (;;) {
      const ended = await this.#attempt(txn);
      if (ended?.type === 'committed') return ended;
      if (ended === undefined) this.#counts.deaths++;
      else if (ended.type === 'conflict') this.#counts.conflicts++;
      // It expired while messages were lost.
      else if (ended.error.code !== 'DEADLINE_EXCEEDED') this.#faults.push(`X1: unexpected ${ended.error.message}`);
      await this.#calls.pause(60);
    }
  }

  /** Undefined: the coordinator stopped. */
  #attempt(txn: FlatTxn): Promise<Ended | undefined> {
    const { random, calm } = this.#world;
    let steps = !calm && random.int(3) === 0 ? random.int(16) : Number.POSITIVE_INFINITY;
    return new Promise((resolve) => {
      const alive = (): boolean => {
        if (steps-- > 0) return true;
        resolve(undefined);
        return false;
      };
      const given = { txnId: `t${++this.#ids}`, txn, expiresMs: EXPIRES_MS[random.int(EXPIRES_MS.length)] ?? 0, alive };
      new SimCoordinator(this.#calls, given).run().then(resolve, (error: unknown) => {
        this.#faults.push(`X1: a coordinator failed: ${String(error)}`);
      });
    });
  }

  #unexpected(error: ServiceError, open: OpenTxn): void {
    this.#faults.push(`X1: unexpected ${error.code} ${error.message}`);
    open.unknown();
  }
}
