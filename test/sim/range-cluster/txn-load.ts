/**
 * Clients whose transactions append to lists and read them. Each list is in a different range. The cycle checker checks
 * the answers.
 *
 * TL1. The transactions are strictly serializable. A transaction whose comparisons failed counts as one that only read.
 * TL2. A transaction that could change a key twice is refused for that reason, and no client sees any effect of it.
 * TL3. Nothing of a branch that is not taken is executed, at any depth. Of two deletes of a key, the first one deletes
 *      it.
 */
import type { Random } from '@remora/base';
import type { Compare, KvOp, KvResult, Query, Txn } from '@remora/protocol';
import { put, range } from '../../../packages/dataserver/test/support/state-bed.ts';
import { checkTransactions, type TxnOp, TxnRecorder } from '../../checkers/index.ts';
import type { RangeCluster } from './bed.ts';
import { Requests } from './requests.ts';
import { type Append, appending, changingTwice, readIn, reading } from './txn-shapes.ts';

/** Outside the keys that other clients write, at both ends of the plain keys and of every range in between. */
const LIST_KEYS: readonly string[] = ['i0', 'i1', 'l0', 'l1'];
const KEYS_PER_TXN = 3;

interface List {
  readonly key: string;
  readonly elements: readonly string[];
  /** 0: the list does not exist. */
  readonly modRevision: number;
}

export class TxnLoad {
  readonly #bed: RangeCluster;
  readonly #random: Random;
  readonly #requests: Requests;
  readonly #history: TxnRecorder;
  #clients = 0;
  #elements = 0;
  /** Acknowledged transactions. */
  committed = 0;
  /** Transactions that could change a key twice, and were refused. */
  refused = 0;
  unknown = 0;
  readonly #faults: string[] = [];

  constructor(bed: RangeCluster) {
    this.#bed = bed;
    this.#random = bed.random;
    this.#requests = new Requests(bed);
    this.#history = new TxnRecorder(() => bed.clock.monotonicMs() * 1e6);
  }

  client(untilMs: number): void {
    const name = `c${++this.#clients}`;
    const next = (): void => {
      if (this.#bed.clock.monotonicMs() >= untilMs) return;
      this.#readAndAppend(name, () => this.#bed.clock.setTimer(this.#random.int(40), next));
    };
    this.#bed.clock.setTimer(this.#random.int(50), next);
  }

  #readAndAppend(client: string, after: () => void): void {
    const keys = this.#someKeys();
    this.#read(client, keys, (lists) => {
      if (lists === undefined || this.#random.int(5) === 0) return after();
      if (this.#random.int(8) === 0) return this.#changeTwice(lists, after);
      // An old read often does not show the current state.
      if (this.#random.int(3) > 0) return this.#append(client, lists, after);
      this.#bed.clock.setTimer(this.#random.int(100), () => this.#append(client, lists, after));
    });
  }

  #someKeys(): readonly string[] {
    const first = this.#random.int(LIST_KEYS.length);
    const count = 1 + this.#random.int(KEYS_PER_TXN);
    return Array.from({ length: count }, (_, i) => LIST_KEYS[(first + i) % LIST_KEYS.length] ?? '').sort();
  }

  #read(client: string, keys: readonly string[], done: (lists: readonly List[] | undefined) => void): void {
    const open = this.#history.begin({ c: client, ops: [] });
    const txn: Txn = { compare: [], success: keys.map((key) => range(key)), failure: [] };
    const query: Query = { type: 'readTxn', txn, serializable: false };
    const timeoutMs = this.#timeoutMs();
    this.#requests.send(
      timeoutMs,
      (backend, answered) => backend.query(query, { timeoutMs }, answered),
      (_error, reply) => {
        const lists = reply?.result.type === 'txn' ? listsOf(keys, reply.result.results) : undefined;
        if (lists === undefined) open.aborted();
        else open.committedAs(reads(lists));
        done(lists);
      },
    );
  }

  /** Appends to some of the lists if all are still as they were read. Otherwise reads them. */
  #append(client: string, lists: readonly List[], after: () => void): void {
    const written = lists.slice(this.#random.int(lists.length));
    const element = `${++this.#elements}`;
    const appends = written.map(({ key }): TxnOp => ({ k: key, op: 'append', v: element }));
    const meant = this.#history.begin({ c: client, ops: [...reads(lists), ...appends] });
    const other = this.#history.begin({ c: client, ops: [] });
    const shaped = appending(
      this.#random,
      written.map((list) => appendTo(list, element)),
    );
    const readBack: KvOp[] =
      [[range('i', 'j')], [range('l', 'm')], [range('i', 'm')], [], []][this.#random.int(5)] ?? [];
    const keys = lists.map(({ key }) => key);
    const failure = reading(this.#random, keys);
    const txn: Txn = { compare: lists.map(unchanged), success: [...shaped.ops, ...readBack], failure };
    this.#requests.command({ type: 'txn', txn }, this.#timeoutMs(), (error, reply) => {
      if (reply?.result.type === 'txn' && reply.result.succeeded) {
        this.committed++;
        this.#faults.push(...shaped.faults(reply.result.results));
        meant.committedAs([...reads(lists), ...appends]);
        other.aborted();
      } else if (reply?.result.type === 'txn') {
        meant.aborted();
        other.committedAs(reads(listsOf(keys, readIn(reply.result.results))));
      } else {
        if (error?.mayBeApplied) {
          this.unknown++;
          meant.unknown();
        } else meant.aborted();
        other.aborted();
      }
      after();
    });
  }

  /** TL2. */
  #changeTwice(lists: readonly List[], after: () => void): void {
    const [list] = lists;
    if (list === undefined) return after();
    const success = changingTwice(this.#random, appendTo(list, `${++this.#elements}`).put);
    this.#requests.command({ type: 'txn', txn: { compare: [], success, failure: [] } }, this.#timeoutMs(), (error) => {
      if (error?.code === 'DUPLICATE_KEY') this.refused++;
      else if (error === undefined || !GATEWAY_GONE.includes(error.code)) {
        this.#faults.push(
          `TL2: ${list.key} could be changed twice, and that was answered with ${error?.code ?? 'a result'}`,
        );
      }
      after();
    });
  }

  #timeoutMs(): number {
    return 500 + this.#random.int(4_000);
  }

  check(): readonly string[] {
    const { result, explanation } = checkTransactions(this.#history.records());
    return [...this.#requests.faults, ...this.#faults, ...(result === 'ok' ? [] : [explanation])];
  }
}

/** No gateway runs, or the gateway ends before it answers. */
const GATEWAY_GONE: readonly string[] = ['UNAVAILABLE', 'UNKNOWN_OUTCOME'];

function appendTo(list: List, element: string): Append {
  const text = [...list.elements, element].join(' ');
  return {
    put: put(list.key, text),
    unchanged: unchanged(list),
    changed: unchanged({ ...list, modRevision: list.modRevision + 1 }),
  };
}

function listsOf(keys: readonly string[], results: readonly KvResult[]): readonly List[] {
  return keys.map((key, i) => {
    const result = results[i];
    const kv = result?.type === 'range' ? result.kvs[0] : undefined;
    if (kv === undefined) return { key, elements: [], modRevision: 0 };
    return { key, elements: Buffer.from(kv.value).toString().split(' '), modRevision: kv.modRevision };
  });
}

function reads(lists: readonly List[]): readonly TxnOp[] {
  return lists.map(({ key, elements }) => ({ k: key, op: 'get', out: elements }));
}

function unchanged({ key, modRevision }: List): Compare {
  return { key: Buffer.from(key), result: 'equal', target: { of: 'mod', value: modRevision } };
}
