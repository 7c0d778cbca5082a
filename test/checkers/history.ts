/**
 * Histories: what clients asked, what they were told, and when. One JSON object per line.
 *
 * H1. `t0` is taken before the request leaves and `t1` after its answer came, by one clock for all clients; an
 *     operation took effect, if at all, between them.
 * H2. `t1: null`: the outcome is unknown (no answer, or an answer that says so). It may take effect at any time after
 *     `t0`, or never. `ok` is false then and `out` means nothing.
 * H3. `ok: false` with a `t1` is an answer: a compare that failed, a lock that was busy or not held. An operation that
 *     was refused for another reason, and certainly had no effect, is not part of a history: `drop` it.
 */
import { assert } from '@remora/base';

/**
 * What was asked for:
 *  - `get` → `out`: the value (or list of elements), null when absent;
 *  - `put` of `v`; `del`; `cas` from `x` (null: absent) to `v`; `append` of the element `v` to a list;
 *  - `acquire` → `out`: the fencing version; not `ok`: busy;
 *  - `release` of the version `v` (absent: of whatever client `c` holds); not `ok`: it did not hold;
 *  - `check` of the version `v` → `out`: whether it is the current one.
 */
export type Op = 'get' | 'put' | 'del' | 'cas' | 'append' | 'acquire' | 'release' | 'check';

export type Value = string | number | boolean | null | readonly string[];

export interface HistoryRecord {
  /** The client, which does one thing after another, or several at a time. */
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

/** One request under way. The first answer counts. */
export interface OpenRequest {
  done(answer: { readonly ok: boolean; readonly out?: Value }): void;
  /** The outcome is unknown, and stays so. */
  unknown(): void;
  /** It certainly had no effect (H3). */
  drop(): void;
}

const OPS: readonly string[] = ['get', 'put', 'del', 'cas', 'append', 'acquire', 'release', 'check'] satisfies Op[];

/** Gathers a history. A run longer than `recordsMax` is a mistake of the test, and stops it. */
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

  /** What happened so far, by begin; requests still under way count as unknown. */
  records(): readonly HistoryRecord[] {
    return this.#records.filter((record) => record !== undefined);
  }
}

/** One history per key, by the order in which keys first appear. Linearizability is local: each stands by itself. */
export function partitionByKey(history: readonly HistoryRecord[]): ReadonlyMap<string, readonly HistoryRecord[]> {
  const parts = new Map<string, HistoryRecord[]>();
  for (const record of history) {
    const part = parts.get(record.k);
    if (part === undefined) parts.set(record.k, [record]);
    else part.push(record);
  }
  return parts;
}

export function toJsonLines(history: readonly HistoryRecord[]): string {
  return history.map((record) => `${JSON.stringify(record)}\n`).join('');
}

/** Throws an `Error` that names the line which is not a record. */
export function fromJsonLines(text: string): readonly HistoryRecord[] {
  const records: HistoryRecord[] = [];
  for (const [i, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    let raw: unknown;
    try {
      raw = JSON.parse(line);
    } catch (cause) {
      throw new Error(`line ${i + 1} is not JSON`, { cause });
    }
    const problem = problemOf(raw);
    if (problem !== undefined) throw new Error(`line ${i + 1} is not a history record: ${problem}`);
    records.push(raw as HistoryRecord);
  }
  return records;
}

function problemOf(raw: unknown): string | undefined {
  if (typeof raw !== 'object' || raw === null) return 'not an object';
  const { c, k, op, v, x, out, ok, t0, t1 } = raw as Record<string, unknown>;
  if (typeof c !== 'string' && typeof c !== 'number') return 'c is not a text or number';
  if (typeof k !== 'string') return 'k is not a text';
  if (typeof op !== 'string' || !OPS.includes(op)) return `op is not one of ${OPS.join(', ')}`;
  if (typeof ok !== 'boolean') return 'ok is not a boolean';
  if (typeof t0 !== 'number') return 't0 is not a number';
  if (t1 !== null && (typeof t1 !== 'number' || t1 < t0)) return 't1 is neither null nor a time from t0 on';
  for (const [name, value] of Object.entries({ v, x, out })) {
    if (value !== undefined && !isValue(value)) return `${name} is not a value`;
  }
  return undefined;
}

function isValue(raw: unknown): boolean {
  if (Array.isArray(raw)) return raw.every((item) => typeof item === 'string');
  return raw === null || ['string', 'number', 'boolean'].includes(typeof raw);
}
