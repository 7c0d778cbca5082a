/**
 * Histories: the requests of clients, their answers, and the times of both. `json-lines.ts` defines their text form.
 *
 * H1. `t0` is taken before the request is sent and `t1` after its answer arrived, by one clock for all clients. An
 *     operation takes effect, if at all, between them.
 * H2. `t1: null`: the outcome is unknown (there was no answer, or the answer says so). The operation may take effect at
 *     any time after `t0`, or never. `ok` is false then, and `out` has no meaning.
 * H3. `ok: false` with a `t1` is an answer: a failed comparison, or a lock that was busy or not held. An operation that
 *     was refused for another reason, and certainly had no effect, is not part of a history: `drop` it.
 */
import { assert } from '@remora/base';

/**
 * The operations:
 *  - `get` → `out`: the value (or list of elements), null when absent;
 *  - `put` of `v`; `del`; `cas` from `x` (null: absent) to `v`; `append` of the element `v` to a list;
 *  - `acquire` → `out`: the fencing version; not `ok`: busy;
 *  - `release` of the version `v` (absent: of whatever client `c` holds); not `ok`: the client did not hold the lock;
 *  - `check` of the version `v` → `out`: whether it is the current one;
 *  - `force`: breaks the lock of any holder; not `ok`: nobody held it.
 */
export type Op = 'get' | 'put' | 'del' | 'cas' | 'append' | 'acquire' | 'release' | 'check' | 'force';

export type Value = string | number | boolean | null | readonly string[];

export interface HistoryRecord {
  /** The client. It performs one operation after another, or several at a time. */
  readonly c: string | number;
  readonly k: string;
  readonly op: Op;
  readonly v?: Value;
  readonly x?: Value;
  readonly out?: Value;
  readonly ok: boolean;
  /** Nanoseconds since some moment. */
  readonly t0: number;
  readonly t1: number | null;
}

export type Request = Pick<HistoryRecord, 'c' | 'k' | 'op' | 'v' | 'x'>;

/** One request in progress. The first answer counts. */
export interface OpenRequest {
  done(answer: { readonly ok: boolean; readonly out?: Value }): void;
  /** The outcome is unknown, and stays unknown. */
  unknown(): void;
  /** It certainly had no effect (H3). */
  drop(): void;
}

/** Records a history. A run with more than `recordsMax` records is a mistake of the test, and is stopped. */
export class HistoryRecorder {
  readonly #nowNs: () => number;
  readonly #recordsMax: number;
  readonly #records: (HistoryRecord | undefined)[] = [];

  constructor(nowNs: () => number, options: { readonly recordsMax?: number } = {}) {
    this.#nowNs = nowNs;
    this.#recordsMax = options.recordsMax ?? 1_000_000;
  }

  begin(request: Request): OpenRequest {
    assert(this.#records.length < this.#recordsMax, `a history has at most ${this.#recordsMax} operations`);
    const at = this.#records.length;
    const open: HistoryRecord = { ...request, ok: false, t0: this.#nowNs(), t1: null };
    this.#records.push(open);
    let answered = false;
    const settle = (record: HistoryRecord | undefined) => {
      if (!answered) this.#records[at] = record;
      answered = true;
    };
    return {
      done: (answer) => settle({ ...open, ...answer, t1: this.#nowNs() }),
      unknown: () => settle(open),
      drop: () => settle(undefined),
    };
  }

  /** The history so far, in the order of beginnings. Requests in progress have an unknown outcome. */
  records(): readonly HistoryRecord[] {
    return this.#records.filter((record) => record !== undefined);
  }
}

/**
 * One history per key, in the order in which keys first appear. Linearizability is local: each key is judged
 * separately.
 */
export function partitionByKey(history: readonly HistoryRecord[]): ReadonlyMap<string, readonly HistoryRecord[]> {
  const parts = new Map<string, HistoryRecord[]>();
  for (const record of history) {
    const part = parts.get(record.k);
    if (part === undefined) parts.set(record.k, [record]);
    else part.push(record);
  }
  return parts;
}
