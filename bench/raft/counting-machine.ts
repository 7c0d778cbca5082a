/**
 * The state machine of the benchmark: it counts operations and adds up their bytes, and knows who waits for which of
 * them. An entry holds one operation, or several in a row, each with its length before it.
 */
import { assert } from '@remora/base';
import type { ConfState, Entry, LogPosition, Role, SnapshotReceiver, StateMachine } from '@remora/raft';

const LENGTH_BYTES = 2;
const FILLER_CHUNK_BYTES = 256 * 1024;
const FILLER = Buffer.alloc(FILLER_CHUNK_BYTES, 1);

/** One entry of several operations. */
export function packOperations(operations: readonly Uint8Array[]): Buffer {
  const bytes = operations.reduce((sum, operation) => sum + LENGTH_BYTES + operation.length, 1);
  const out = Buffer.allocUnsafe(bytes);
  out[0] = SEVERAL;
  let at = 1;
  for (const operation of operations) {
    out.writeUInt16LE(operation.length, at);
    out.set(operation, at + LENGTH_BYTES);
    at += LENGTH_BYTES + operation.length;
  }
  return out;
}

/** First byte of an entry of several operations; a single operation begins with anything else. */
const SEVERAL = 0xff;

/** Told what became of the entry that was proposed at a position. */
export type Waiter = (applied: boolean) => void;

export class CountingMachine implements StateMachine {
  operations = 0;
  sum = 0;
  #applied: LogPosition = { index: 0, term: 0 };
  #conf: ConfState;
  readonly #fillerBytes: number;
  /** By index, in the order of the proposals. */
  readonly #waiting: { readonly position: LogPosition; readonly waiter: Waiter }[] = [];
  #head = 0;

  /** `fillerBytes` make its snapshots larger than what they say. */
  constructor(conf: ConfState, fillerBytes = 0) {
    this.#conf = conf;
    this.#fillerBytes = fillerBytes;
  }

  get applied(): LogPosition {
    return this.#applied;
  }

  /** `waiter` is told when the entry at `position`, just proposed here, is applied, or another in its place. */
  wait(position: LogPosition, waiter: Waiter): void {
    this.#waiting.push({ position, waiter });
  }

  apply(entries: readonly Entry[], conf: ConfState): void {
    this.#conf = conf;
    for (const entry of entries) {
      assert(entry.index === this.#applied.index + 1, 'entries are applied in order');
      this.#applied = { index: entry.index, term: entry.term };
      this.#count(entry.data);
    }
    this.#answer(this.#applied);
  }

  roleChanged({ role }: { readonly role: Role }): void {
    if (role === 'leader') return;
    for (; this.#head < this.#waiting.length; this.#head++) this.#waiting[this.#head]?.waiter(false);
    this.#forgetAnswered();
  }

  snapshot(): ReturnType<StateMachine['snapshot']> {
    const { operations, sum } = this;
    const fillerBytes = this.#fillerBytes;
    async function* chunks(): AsyncIterable<Uint8Array> {
      yield Buffer.from(JSON.stringify({ operations, sum }));
      for (let left = fillerBytes; left > 0; left -= FILLER_CHUNK_BYTES) {
        yield FILLER.subarray(0, Math.min(left, FILLER_CHUNK_BYTES));
      }
    }
    const { index, term } = this.#applied;
    return { meta: { index, term, conf: this.#conf }, chunks: chunks(), release: () => {} };
  }

  install(meta: LogPosition & { readonly conf: ConfState }): SnapshotReceiver {
    // What comes first, and is never cut, says everything; the rest is filler.
    let said: string | undefined;
    return {
      chunk: async (bytes) => {
        said ??= Buffer.from(bytes).toString();
      },
      finish: async () => {
        const state: { operations: number; sum: number } = JSON.parse(said ?? '');
        this.operations = state.operations;
        this.sum = state.sum;
        this.#applied = { index: meta.index, term: meta.term };
        this.#conf = meta.conf;
      },
      abort: () => {},
    };
  }

  #count(data: Uint8Array): void {
    if (data.length === 0) return;
    if (data[0] !== SEVERAL) return this.#countOne(data, 0, data.length);
    let at = 1;
    while (at < data.length) {
      const begin = at + LENGTH_BYTES;
      const end = begin + (data[at] ?? 0) + 256 * (data[at + 1] ?? 0);
      this.#countOne(data, begin, end);
      at = end;
    }
  }

  #countOne(data: Uint8Array, begin: number, end: number): void {
    this.operations++;
    // Reads of the operation's ends stand for reading it.
    this.sum = (this.sum + (data[begin] ?? 0) + 3 * (data[end - 1] ?? 0)) >>> 0;
  }

  #answer({ index, term }: LogPosition): void {
    for (; this.#head < this.#waiting.length; this.#head++) {
      const next = this.#waiting[this.#head];
      if (next === undefined || next.position.index > index) break;
      next.waiter(next.position.term <= term);
    }
    this.#forgetAnswered();
  }

  #forgetAnswered(): void {
    if (this.#head < this.#waiting.length && this.#head < 1024) return;
    this.#waiting.splice(0, this.#head);
    this.#head = 0;
  }
}
