/**
 * Clients that read and write plain keys, and the faults in the answers that they received.
 *
 * KV1. An acknowledged write happened once, at the revision that the answer named. A failed write did not happen. A
 *      write with an unknown outcome happened at most once.
 * KV2. A read returns exactly what the keys held at the revision that its answer names.
 * KV3. Revisions respect real time over all ranges: an answer's revision is at least that of every answer that arrived
 *      before its request began, and a write's revision is above all of those.
 * KV4. A change of several ranges happens at one revision, and everything that it read is as of that revision.
 */
import type { Random, ServiceError } from '@remora/base';
import {
  type Command,
  type KvOp,
  type KvResult,
  type Query,
  type QueryResult,
  type RangeOp,
  type RangeResult,
  rangeOp,
} from '@remora/protocol';
import type { RangeCluster } from './bed.ts';
import { type Reply, Requests } from './requests.ts';
import { shown, type Truth } from './truth.ts';

interface Observation {
  readonly what: string;
  /** The value that it puts if it succeeds. */
  readonly value: string | undefined;
  readonly startMs: number;
  endMs: number | undefined;
  error: ServiceError | undefined;
  reply: Reply | undefined;
  /** The ranges of the reply that show a state: `[start, end)`. */
  readonly reads: (reply: Reply) => readonly { start: string; end: string | undefined; result: RangeResult }[];
}

const KEYS = ['k0', 'k1', 'k2', 'k3'];
const ALL = { start: 'k', end: 'l' };
/** Operations on several keys: a deletion of a range of keys, and a put together with a read of others. */
const SEVERAL_KEYS: readonly number[] = [3, 7];

export class KvLoad {
  readonly #bed: RangeCluster;
  readonly #random: Random;
  readonly #oneKeyWrites: boolean;
  readonly observations: Observation[] = [];
  readonly #requests: Requests;
  #values = 0;

  /** `oneKeyWrites`: no write changes several keys, because other runs cover that. */
  constructor(bed: RangeCluster, { oneKeyWrites = false }: { readonly oneKeyWrites?: boolean } = {}) {
    this.#oneKeyWrites = oneKeyWrites;
    this.#bed = bed;
    this.#random = bed.random;
    this.#requests = new Requests(bed);
  }

  /** One client, until `untilMs`. It sends one request after another, each through some gateway. */
  client(untilMs: number): void {
    const next = (): void => {
      if (this.#bed.clock.monotonicMs() >= untilMs) return;
      this.#one(() => this.#bed.clock.setTimer(this.#random.int(60), next));
    };
    this.#bed.clock.setTimer(this.#random.int(50), next);
  }

  #one(after: () => void): void {
    const key = KEYS[this.#random.int(KEYS.length)] ?? 'k0';
    const value = `v${++this.#values}`;
    const what = this.#random.int(8);
    switch (this.#oneKeyWrites && SEVERAL_KEYS.includes(what) ? 0 : what) {
      case 0:
      case 1:
        return this.#write(`put ${key}`, { type: 'kv', op: put(key, value) }, value, () => [], after);
      case 2:
        return this.#cas(key, value, after);
      case 3:
        return this.#write(
          `delete from ${key}`,
          { type: 'kv', op: { type: 'delete', key: Buffer.from(key), end: Buffer.from('k2'), prevKv: true } },
          undefined,
          () => [],
          after,
        );
      case 4: {
        const op = range(key, undefined);
        return this.#read(
          { type: 'range', op, serializable: false },
          (r) => [{ start: key, end: undefined, result: r as RangeResult }],
          after,
        );
      }
      case 5:
        return this.#read(
          { type: 'range', op: range(ALL.start, ALL.end), serializable: false },
          (r) => [{ ...ALL, result: r as RangeResult }],
          after,
        );
      case 6:
        return this.#readTxn(key, after);
      default:
        return this.#putAndRead(key, value, after);
    }
  }

  #cas(key: string, value: string, after: () => void): void {
    const txn = {
      compare: [
        {
          key: Buffer.from(key),
          result: 'equal' as const,
          target: { of: 'version' as const, value: this.#random.int(3) },
        },
      ],
      success: [put(key, value)],
      failure: [range(key, undefined)],
    };
    const reads = (reply: Reply) => {
      const result = reply.result;
      if (result.type !== 'txn' || result.succeeded) return [];
      return [{ start: key, end: undefined, result: result.results[0] as RangeResult }];
    };
    this.#write(`cas ${key}`, { type: 'txn', txn }, value, reads, after);
  }

  /** Reads cold data within a command, after the command's own change. */
  #putAndRead(key: string, value: string, after: () => void): void {
    const txn = { compare: [], success: [put(key, value), range(ALL.start, ALL.end)], failure: [] };
    const reads = (reply: Reply) =>
      reply.result.type === 'txn' ? [{ ...ALL, result: reply.result.results[1] as RangeResult }] : [];
    this.#write(`put and read ${key}`, { type: 'txn', txn }, value, reads, after);
  }

  #readTxn(key: string, after: () => void): void {
    const txn = {
      compare: [],
      success: [range(key, undefined), range(ALL.start, ALL.end), range('k0', 'k2')],
      failure: [],
    };
    this.#read(
      { type: 'readTxn', txn, serializable: false },
      (result) => {
        if (result.type !== 'txn') return [];
        const [one, all, some] = result.results as RangeResult[];
        if (one === undefined || all === undefined || some === undefined) return [];
        return [
          { start: key, end: undefined, result: one },
          { ...ALL, result: all },
          { start: 'k0', end: 'k2', result: some },
        ];
      },
      after,
    );
  }

  #read(query: Query, reads: (result: QueryResult) => ReturnType<Observation['reads']>, after: () => void): void {
    const seen = this.#begin('read', undefined, (reply) => reads(reply.result as QueryResult));
    const timeoutMs = 300 + this.#random.int(1_500);
    this.#requests.send(
      timeoutMs,
      (backend, done) => backend.query(query, { timeoutMs }, done),
      (error, reply) => {
        this.#end(seen, error, reply);
        after();
      },
    );
  }

  #write(
    what: string,
    command: Command,
    value: string | undefined,
    reads: Observation['reads'],
    after: () => void,
  ): void {
    const seen = this.#begin(what, value, reads);
    const timeoutMs = 300 + this.#random.int(1_500);
    this.#requests.command(command, timeoutMs, (error, reply) => {
      this.#end(seen, error, reply);
      after();
    });
  }

  #begin(what: string, value: string | undefined, reads: Observation['reads']): Observation {
    const startMs = this.#bed.clock.monotonicMs();
    const seen = { what, value, startMs, endMs: undefined, error: undefined, reply: undefined, reads };
    this.observations.push(seen);
    return seen;
  }

  #end(seen: Observation, error: ServiceError | undefined, reply: Reply | undefined): void {
    seen.endMs = this.#bed.clock.monotonicMs();
    seen.error = error;
    seen.reply = reply;
  }

  check(truth: Truth): readonly string[] {
    return [
      ...this.#requests.faults,
      ...this.observations.flatMap((seen) => this.#checkOne(seen, truth)),
      ...this.#checkOrder(),
    ];
  }

  #checkOne(seen: Observation, truth: Truth): readonly string[] {
    const at = seen.value === undefined ? [] : truth.revisionsOf(seen.value);
    const name = `${seen.what} ${seen.value ?? ''} at ${seen.startMs}`;
    if (at.length > 1) return [`${name} was applied ${at.length} times`];
    if (seen.endMs === undefined) return [];
    if (seen.error !== undefined) {
      const unknown = seen.error.mayBeApplied;
      return at.length > 0 && !unknown ? [`${name} failed with ${seen.error.code}, and was applied`] : [];
    }
    const reply = seen.reply;
    if (reply === undefined) return [`${name} has neither reply nor error`];
    const faults: string[] = [];
    if (seen.value !== undefined && changed(reply) && at[0] !== reply.revision) {
      faults.push(`${name} was acknowledged at ${reply.revision}, and happened at ${at.join()}`);
    }
    for (const { start, end, result } of seen.reads(reply)) {
      const want = truth.stateAt(reply.revision, start, end).join(' ');
      const got = shown(result.kvs).join(' ');
      if (got !== want) faults.push(`${name} saw [${got}] at ${reply.revision}, where there was [${want}]`);
    }
    return faults;
  }

  /** KV3. */
  #checkOrder(): readonly string[] {
    const faults: string[] = [];
    const answered = this.observations.filter((seen) => seen.reply !== undefined && seen.endMs !== undefined);
    const byEnd = answered.toSorted((a, b) => (a.endMs ?? 0) - (b.endMs ?? 0));
    let at = 0;
    let floor = 0;
    for (const seen of answered.toSorted((a, b) => a.startMs - b.startMs)) {
      for (let done = byEnd[at]; done !== undefined && (done.endMs ?? 0) < seen.startMs; done = byEnd[++at]) {
        floor = Math.max(floor, done.reply?.revision ?? 0);
      }
      const { reply } = seen;
      if (reply === undefined) continue;
      const { revision } = reply;
      if (revision < floor) faults.push(`${seen.what} at ${seen.startMs} saw ${revision}, after ${floor} was seen`);
      if (revision === floor && changed(reply)) {
        faults.push(`${seen.what} at ${seen.startMs} wrote at ${revision}, which an earlier answer carried`);
      }
    }
    return faults;
  }
}

/** Whether an acknowledged write changed something. A comparison may have failed, or the key may not have existed. */
function changed({ result }: Reply): boolean {
  if (result.type === 'delete') return result.deleted > 0;
  return result.type === 'put' || (result.type === 'txn' && result.succeeded && result.results.some(isPut));
}

function isPut({ type }: KvResult): boolean {
  return type === 'put';
}

function put(key: string, value: string): Extract<KvOp, { type: 'put' }> {
  return {
    type: 'put',
    key: Buffer.from(key),
    value: Buffer.from(value),
    lease: 0n,
    prevKv: false,
    ignoreValue: false,
    ignoreLease: false,
  };
}

function range(key: string, end: string | undefined): RangeOp {
  return rangeOp({ key: Buffer.from(key), ...(end !== undefined && { end: Buffer.from(end) }) });
}
