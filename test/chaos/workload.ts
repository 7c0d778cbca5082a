/**
 * Load on a cluster, with everything written down.
 *
 * W1. Values and list elements are unique over the whole run, so that what is read names the request that wrote it.
 * W2. Keys are renewed with each round, so that each history stays short enough to be decided; old ones are read again
 *     at the end.
 * W3. A client does one thing after another. A request ends at the latest by its client's own time-out.
 */

import { randomUUID } from 'node:crypto';
import { type Random, SeededRandom } from '@remora/base';
import { connect } from 'remora';
import { HistoryRecorder } from '../checkers/index.ts';
import { pause } from '../e2e/eventually.ts';
import type { KvClient, Outcome } from './kv-client.ts';
import { CriticalSections, LockUser } from './lock-user.ts';
import { RawKv } from './raw-kv.ts';
import { RepeatingWriter } from './repeating-writer.ts';
import { openSdkKv } from './sdk-kv.ts';

const REGISTERS = 4;
const LISTS = 2;
const LOCKS = 2;
const PATIENT_MS = 15_000;
const IMPATIENT_MS = 400;

export interface WorkloadOptions {
  readonly endpoints: readonly string[];
  readonly seed: number;
  /** Mean pause between two requests of a client. */
  readonly thinkMs: number;
}

/** One write that was asked for, for the audit of the events. */
export interface Write {
  readonly key: string;
  readonly value: string;
  outcome: Outcome['type'] | 'open';
}

export class Workload {
  readonly registers: HistoryRecorder;
  readonly lists: HistoryRecorder;
  readonly locks: HistoryRecorder;
  readonly sections = new CriticalSections();
  /** By value (W1). */
  readonly writes = new Map<string, Write>();
  readonly failures = new Map<string, number>();
  readonly #options: WorkloadOptions;
  readonly #random: Random;
  readonly #stop = new AbortController();
  readonly #raw: RawKv[] = [];
  readonly #kv: KvClient[] = [];
  readonly #writers: RepeatingWriter[] = [];
  readonly #lockUsers: LockUser[] = [];
  readonly #loops: Promise<void>[] = [];
  /** Keeps the keys of several runs on one cluster apart. */
  readonly #run = randomUUID().slice(0, 8);
  readonly #keys = new Set<string>();
  #round = 0;
  #next = 1;

  constructor(options: WorkloadOptions) {
    this.#options = options;
    this.#random = new SeededRandom(options.seed);
    const nowNs = () => Math.round(performance.now() * 1e6);
    this.registers = new HistoryRecorder(nowNs);
    this.lists = new HistoryRecorder(nowNs);
    this.locks = new HistoryRecorder(nowNs);
  }

  /** Connects all clients and begins. */
  async start(): Promise<void> {
    const { endpoints } = this.#options;
    for (const [i, endpoint] of endpoints.entries()) {
      this.#raw.push(new RawKv({ name: `raw${i + 1}`, endpoint, timeoutMs: IMPATIENT_MS }));
    }
    this.#kv.push(
      ...this.#raw,
      await openSdkKv({ name: 'sdk1', endpoints, timeoutMs: PATIENT_MS }),
      await openSdkKv({ name: 'sdk2', endpoints, timeoutMs: PATIENT_MS }),
      await openSdkKv({ name: 'sdk-impatient', endpoints, timeoutMs: IMPATIENT_MS }),
    );
    for (let i = 1; i <= 4; i++) this.#writers.push(new RepeatingWriter(`repeats${i}`, endpoints));
    const { locks: recorder, sections } = this;
    for (let i = 1; i <= 4; i++) {
      this.#lockUsers.push(await LockUser.open({ name: `locker${i}`, endpoints, recorder, sections }));
    }
    // Written once, before anything happens: to be there at the end.
    const [first] = this.#kv.slice(endpoints.length);
    for (let i = 0; first !== undefined && i < REGISTERS; i++) await this.#put(first, this.#register('first', i));
    for (const client of this.#kv) this.#loop((random) => this.#useRegister(client, random));
    for (const writer of [...this.#writers, ...this.#kv.slice(0, 4)]) this.#loop(() => this.#append(writer));
    for (const user of this.#lockUsers) {
      this.#loop((random) => user.turn(`lock/${this.#run}/${this.#round}/${random.int(LOCKS)}`, 2 + random.int(20)));
    }
  }

  /** From now on, other keys (W2). */
  nextRound(): void {
    this.#round++;
  }

  /** Requests that one node was sent by clients that use only that node, and has not answered. */
  inFlight(endpoint: string): number {
    const raw = this.#raw.filter((client) => client.endpoint === endpoint);
    const ofRaw = raw.reduce((sum, client) => sum + client.inFlight, 0);
    return this.#writers.reduce((sum, writer) => sum + writer.inFlight(endpoint), ofRaw);
  }

  /** Ends the load: every client finishes what it does. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#loops);
  }

  /** Reads every register that was ever used, and the whole history of every list, into the recorded histories. */
  async readBack(): Promise<ReadonlyMap<string, readonly string[]>> {
    const { endpoints } = this.#options;
    const reader = await openSdkKv({ name: 'reader', endpoints, timeoutMs: PATIENT_MS });
    for (const key of this.#keys) {
      if (key.startsWith('register/')) await this.#get(reader, key);
    }
    await reader.close();
    const events = await eventsOf(endpoints, this.#keys);
    for (const [key, values] of events) {
      if (!key.startsWith('list/')) continue;
      this.lists.begin({ c: 'reader', k: key, op: 'get' }).done({ ok: true, out: values });
    }
    return events;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#kv, ...this.#writers, ...this.#lockUsers].map((client) => client.close()));
  }

  /** Until the end, one after another, each client with a random sequence of its own (W3). */
  #loop(turn: (random: Random) => Promise<void>): void {
    const random = new SeededRandom(this.#random.int(2 ** 31));
    const loop = async () => {
      while (!this.#stop.signal.aborted) {
        await turn(random);
        await pause(random.int(2 * this.#options.thinkMs + 1));
      }
    };
    this.#loops.push(loop());
  }

  async #useRegister(client: KvClient, random: Random): Promise<void> {
    const key = this.#register(this.#round, random.int(REGISTERS));
    const dice = random.int(20);
    if (dice < 8) return this.#put(client, key);
    if (dice < 9) return this.#delete(client, key);
    const value = await this.#get(client, key);
    if (dice < 15 || value === undefined) return;
    await this.#compareAndSet(client, key, value);
  }

  #register(round: number | string, i: number): string {
    const key = `register/${this.#run}/${round}/${i}`;
    this.#keys.add(key);
    return key;
  }

  /** The value read; undefined when there was no answer. */
  async #get(client: KvClient, key: string): Promise<string | null | undefined> {
    const open = this.registers.begin({ c: client.name, k: key, op: 'get' });
    const outcome = await client.get(key);
    if (outcome.type !== 'done') {
      open.drop();
      return undefined;
    }
    const value = typeof outcome.out === 'string' ? outcome.out : null;
    open.done({ ok: true, out: value });
    return value;
  }

  async #put(client: KvClient, key: string): Promise<void> {
    const write = this.#write(client.name, key);
    const open = this.registers.begin({ c: client.name, k: key, op: 'put', v: write.value });
    settle(open, await this.#noted(write, client.put(key, write.value)));
  }

  async #delete(client: KvClient, key: string): Promise<void> {
    settle(this.registers.begin({ c: client.name, k: key, op: 'del' }), await client.delete(key));
  }

  async #compareAndSet(client: KvClient, key: string, expected: string | null): Promise<void> {
    const write = this.#write(client.name, key);
    const open = this.registers.begin({ c: client.name, k: key, op: 'cas', x: expected, v: write.value });
    settle(open, await this.#noted(write, client.compareAndSet(key, expected, write.value)));
  }

  /** A put, of which the key's history in the store is the list. */
  async #append(client: Pick<KvClient, 'name' | 'put'>): Promise<void> {
    const key = `list/${this.#run}/${this.#round}/${this.#next % LISTS}`;
    this.#keys.add(key);
    const write = this.#write(client.name, key);
    const open = this.lists.begin({ c: client.name, k: key, op: 'append', v: write.value });
    settle(open, await this.#noted(write, client.put(key, write.value)));
  }

  #write(client: string, key: string): Write {
    const write: Write = { key, value: `${client}-${this.#next++}`, outcome: 'open' };
    this.writes.set(write.value, write);
    return write;
  }

  async #noted(write: Write, outcome: Promise<Outcome>): Promise<Outcome> {
    const ended = await outcome;
    // A compare that failed did not write.
    write.outcome = ended.type === 'done' && !ended.ok ? 'failed' : ended.type;
    if (ended.type === 'failed') this.failures.set(ended.why, (this.failures.get(ended.why) ?? 0) + 1);
    return ended;
  }
}

function settle(open: ReturnType<HistoryRecorder['begin']>, outcome: Outcome): void {
  switch (outcome.type) {
    case 'done':
      return open.done(outcome.out === undefined ? { ok: outcome.ok } : { ok: outcome.ok, out: outcome.out });
    case 'unknown':
      return open.unknown();
    case 'failed':
      return open.drop();
  }
}

/** The values that were ever put to each key, in order, as a watch from the beginning tells it. */
async function eventsOf(
  endpoints: readonly string[],
  keys: ReadonlySet<string>,
): Promise<ReadonlyMap<string, readonly string[]>> {
  await using client = await connect({ endpoints });
  const events = new Map([...keys].map((key) => [key, [] as string[]]));
  const end = 'zz-end-of-history';
  const { revision } = await client.kv.put(end, 'now');
  const watch = client.kv.watch({ start: 'a' }, { startRevision: 1 });
  for await (const { type, kv } of watch) {
    if (type === 'put') events.get(kv.key.toString())?.push(kv.value.toString());
    if (kv.key.toString() === end && kv.modRevision >= revision) break;
  }
  return events;
}
