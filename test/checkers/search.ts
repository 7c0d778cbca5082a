import { assert } from '@remora/base';
import type { HistoryRecord } from './history.ts';
import type { Model, Narrowed } from './models.ts';

export interface SearchOptions {
  readonly statesMax: number;
  /** The number of operations to try in some place, which limits the time. Default: 30 per configuration. */
  readonly stepsMax?: number;
}

const STEPS_PER_STATE = 30;

export interface SearchResult<S> {
  readonly result: 'ok' | 'violation' | 'undecided';
  readonly states: number;
  readonly steps: number;
  /** The longest partial explanation, and the state after it. */
  readonly path: readonly HistoryRecord[];
  readonly state: S;
}

/** Searches for an order that explains the operations of one object. See `linearizability.ts` for G1 to G6. */
export function search<S>(model: Model<S>, ops: readonly HistoryRecord[], options: SearchOptions): SearchResult<S> {
  const narrowed = model.narrow?.(ops) ?? { ops, step: model.step };
  if (hasUnreachable(model, narrowed.ops)) {
    return { result: 'violation', states: 0, steps: 0, path: [], state: model.initial };
  }
  return new Search(model, narrowed).run({ stepsMax: STEPS_PER_STATE * options.statesMax, ...options });
}

/** G6. Whether an operation needs a state to which no other operation leads that began before it ended. */
function hasUnreachable<S>(model: Model<S>, ops: readonly HistoryRecord[]): boolean {
  const initial = model.fingerprint(model.initial);
  const givers = new Map<string, { first: HistoryRecord; second: HistoryRecord | undefined }>();
  for (const op of ops) {
    const gives = model.gives?.(op);
    if (gives === undefined) continue;
    const known = givers.get(gives);
    if (known === undefined) givers.set(gives, { first: op, second: undefined });
    else if (op.t0 < known.first.t0) [known.first, known.second] = [op, known.first];
    else if (known.second === undefined || op.t0 < known.second.t0) known.second = op;
  }
  return ops.some((op) => {
    const needs = model.needs?.(op);
    if (needs === undefined || needs === initial || op.t1 === null) return false;
    const known = givers.get(needs);
    const giver = known?.first === op ? known.second : known?.first;
    return giver === undefined || giver.t0 > op.t1;
  });
}

interface Frame<S> {
  /** The index of a completed operation, or of one with an unknown outcome. */
  readonly op: number;
  readonly unknown: boolean;
  /** The state before it. */
  readonly state: S;
  /** G2: no alternative needs to be tried. */
  readonly forced: boolean;
}

const HEAD = 0;

class Search<S> {
  readonly #model: Model<S>;
  readonly #step: Model<S>['step'];
  /** Completed operations, then those with an unknown outcome, each in the order of beginnings. */
  readonly #done: readonly HistoryRecord[];
  readonly #open: readonly HistoryRecord[];
  /**
   * Beginnings and ends of the operations that are not placed, in time order, as a linked list. Node 0 is the head.
   * Operation i begins at node 2i + 1 and ends at node 2i + 2.
   */
  readonly #next: Int32Array;
  readonly #previous: Int32Array;
  readonly #placedDone: BitSet;
  readonly #placedOpen: BitSet;
  /** G3. For each operation of unknown outcome, the previous equal one, or -1. */
  readonly #twins: readonly number[];
  readonly #stack: Frame<S>[] = [];
  readonly #failed = new Set<string>();
  /** G5. By fingerprint: how many unplaced operations need a state, and how many lead to it. */
  readonly #needed = new Map<string, number>();
  readonly #given = new Map<string, number>();
  #state: S;
  #remaining: number;
  #steps = 0;
  #longest: readonly HistoryRecord[] = [];
  #longestState: S;

  constructor(model: Model<S>, { ops, step }: Narrowed<S>) {
    this.#model = model;
    this.#step = step;
    for (const op of ops) this.#count(op, 1);
    const byBegin = ops.toSorted((a, b) => a.t0 - b.t0);
    this.#done = byBegin.filter((op) => op.t1 !== null);
    this.#open = byBegin.filter((op) => op.t1 === null);
    this.#twins = twinsOf(this.#open);
    this.#remaining = this.#done.length;
    this.#placedDone = new BitSet(this.#done.length);
    this.#placedOpen = new BitSet(this.#open.length);
    this.#next = new Int32Array(2 * this.#done.length + 1).fill(-1);
    this.#previous = new Int32Array(2 * this.#done.length + 1).fill(-1);
    this.#link();
    this.#state = model.initial;
    this.#longestState = model.initial;
  }

  run({ statesMax, stepsMax }: Required<SearchOptions>): SearchResult<S> {
    let node = this.#first();
    let open = -1; // Negative while completed operations are tried. Then the next one of unknown outcome.
    for (;;) {
      if (this.#remaining === 0) return this.#answer('ok');
      if (this.#failed.size > statesMax || this.#steps > stepsMax) return this.#answer('undecided');
      let stuck = false;
      if (open < 0) {
        if (isEnd(node)) {
          open = 0;
          continue;
        }
        const placed = this.#try((node - 1) / 2, false);
        stuck = placed === 'stuck';
        node = placed === 'placed' ? this.#first() : this.#after(node);
      } else if (this.#mayBegin(open)) {
        const placed = this.#try(open, true);
        open = placed === 'placed' ? -1 : open + 1;
        node = this.#first();
      } else {
        stuck = true;
      }
      if (!stuck) continue;
      const frame = this.#back();
      if (frame === undefined) return this.#answer('violation');
      open = frame.unknown ? frame.op + 1 : -1;
      node = frame.unknown ? this.#after(HEAD) : this.#after(2 * frame.op + 1);
    }
  }

  /** Places an operation if it fits and leads to a new configuration. `stuck`: by G2 there is no alternative. */
  #try(op: number, unknown: boolean): 'placed' | 'passed' | 'stuck' {
    const record = unknown ? this.#open[op] : this.#done[op];
    assert(record !== undefined, 'an operation that is tried exists');
    this.#steps += 1;
    const bits = unknown ? this.#placedOpen : this.#placedDone;
    if (unknown && (bits.has(op) || this.#hasTwinLeft(op))) return 'passed';
    const state = this.#step(this.#state, record);
    if (state === undefined || (unknown && state === this.#state)) return 'passed'; // G3
    if (state !== this.#state && this.#isNeeded(record)) return 'passed';
    bits.add(op);
    const forced = !unknown && this.#model.observes(record);
    assert(!forced || state === this.#state, 'D2: what only observes changes nothing');
    if (!this.#isNew(state)) {
      bits.delete(op);
      return forced ? 'stuck' : 'passed';
    }
    this.#stack.push({ op, unknown, state: this.#state, forced });
    this.#state = state;
    this.#count(record, -1);
    if (!unknown) {
      this.#remaining -= 1;
      this.#unlinkNode(2 * op + 1);
      this.#unlinkNode(2 * op + 2);
    }
    return 'placed';
  }

  /** The first operation to try: one that may come next, fits and only observes (G2), if there is one. */
  #first(): number {
    const first = this.#after(HEAD);
    for (let node = first; node > HEAD && !isEnd(node); node = this.#after(node)) {
      const record = this.#done[(node - 1) / 2];
      if (record === undefined || !this.#model.observes(record)) continue;
      this.#steps += 1;
      if (this.#step(this.#state, record) !== undefined) return node;
    }
    return first;
  }

  /** G3. */
  #hasTwinLeft(op: number): boolean {
    const twin = this.#twins[op] ?? -1;
    return twin >= 0 && !this.#placedOpen.has(twin);
  }

  /** Undoes the last placement that has alternatives. Undefined if none has. */
  #back(): Frame<S> | undefined {
    if (this.#stack.length > this.#longest.length) {
      this.#longest = this.#path();
      this.#longestState = this.#state;
    }
    for (;;) {
      const frame = this.#stack.pop();
      if (frame === undefined) return undefined;
      this.#state = frame.state;
      (frame.unknown ? this.#placedOpen : this.#placedDone).delete(frame.op);
      const record = frame.unknown ? this.#open[frame.op] : this.#done[frame.op];
      if (record !== undefined) this.#count(record, 1);
      if (!frame.unknown) {
        this.#remaining += 1;
        this.#relinkNode(2 * frame.op + 2);
        this.#relinkNode(2 * frame.op + 1);
      }
      if (!frame.forced) return frame;
    }
  }

  /** G1, for an operation of unknown outcome. */
  #mayBegin(op: number): boolean {
    const record = this.#open[op];
    if (record === undefined) return false;
    let node = this.#after(HEAD);
    while (!isEnd(node)) node = this.#after(node);
    const firstEnd = this.#done[(node - 2) / 2]?.t1 ?? 0;
    return record.t0 <= firstEnd;
  }

  /** G5. Whether another operation needs the current state, and nothing leads back to it once `leaving` is placed. */
  #isNeeded(leaving: HistoryRecord): boolean {
    if (this.#needed.size === 0) return false;
    const present = this.#model.fingerprint(this.#state);
    const needed = (this.#needed.get(present) ?? 0) - Number(this.#model.needs?.(leaving) === present);
    const given = (this.#given.get(present) ?? 0) - Number(this.#model.gives?.(leaving) === present);
    return needed > 0 && given <= 0;
  }

  #count(op: HistoryRecord, by: number): void {
    const needs = this.#model.needs?.(op);
    const gives = this.#model.gives?.(op);
    if (needs !== undefined) this.#needed.set(needs, (this.#needed.get(needs) ?? 0) + by);
    if (gives !== undefined) this.#given.set(gives, (this.#given.get(gives) ?? 0) + by);
  }

  /** G4. */
  #isNew(state: S): boolean {
    const key = `${this.#placedDone.text()}/${this.#placedOpen.text()}/${this.#model.fingerprint(state)}`;
    const before = this.#failed.size;
    return this.#failed.add(key).size > before;
  }

  #path(): readonly HistoryRecord[] {
    return this.#stack.flatMap(({ op, unknown }) => (unknown ? this.#open[op] : this.#done[op]) ?? []);
  }

  #answer(result: SearchResult<S>['result']): SearchResult<S> {
    const path = this.#longest;
    return { result, states: this.#failed.size, steps: this.#steps, path, state: this.#longestState };
  }

  #link(): void {
    const times = new Float64Array(this.#next.length);
    for (const [i, op] of this.#done.entries()) {
      times[2 * i + 1] = op.t0;
      times[2 * i + 2] = op.t1 ?? 0;
    }
    const at = (node: number) => times[node] ?? 0;
    // At the same moment beginnings come before ends: operations that touch count as concurrent.
    const nodes = Array.from({ length: this.#next.length - 1 }, (_, i) => i + 1).sort(
      (a, b) => at(a) - at(b) || Number(isEnd(a)) - Number(isEnd(b)) || a - b,
    );
    let last = HEAD;
    for (const node of nodes) {
      this.#next[last] = node;
      this.#previous[node] = last;
      last = node;
    }
  }

  #after(node: number): number {
    return this.#next[node] ?? -1;
  }

  #unlinkNode(node: number): void {
    const next = this.#next[node] ?? -1;
    const previous = this.#previous[node] ?? HEAD;
    this.#next[previous] = next;
    if (next >= 0) this.#previous[next] = previous;
  }

  /** Undoes `unlinkNode`: in the reverse order, each node still knows its neighbours (Knuth's dancing links). */
  #relinkNode(node: number): void {
    const next = this.#next[node] ?? -1;
    const previous = this.#previous[node] ?? HEAD;
    this.#next[previous] = node;
    if (next >= 0) this.#previous[next] = node;
  }
}

function twinsOf(ops: readonly HistoryRecord[]): readonly number[] {
  const last = new Map<string, number>();
  return ops.map(({ c, op, v, x }, i) => {
    const asked = JSON.stringify([c, op, v, x]);
    const twin = last.get(asked) ?? -1;
    last.set(asked, i);
    return twin;
  });
}

function isEnd(node: number): boolean {
  assert(node > HEAD, 'what is not placed has an end ahead');
  return node % 2 === 0;
}

/** A set of small integers with a short text form: a full lower part counts as one number. */
class BitSet {
  readonly #words: Uint16Array;
  /** All words below are full. */
  #full = 0;
  /** No word from here on has a member. */
  #end = 0;

  constructor(size: number) {
    this.#words = new Uint16Array(Math.ceil(size / 16));
  }

  has(i: number): boolean {
    return ((this.#words[i >>> 4] ?? 0) & (1 << (i & 15))) !== 0;
  }

  add(i: number): void {
    const word = i >>> 4;
    this.#words[word] = (this.#words[word] ?? 0) | (1 << (i & 15));
    this.#end = Math.max(this.#end, word + 1);
    while (this.#words[this.#full] === 0xffff) this.#full += 1;
  }

  delete(i: number): void {
    const word = i >>> 4;
    this.#words[word] = (this.#words[word] ?? 0) & ~(1 << (i & 15));
    this.#full = Math.min(this.#full, word);
    while (this.#end > 0 && this.#words[this.#end - 1] === 0) this.#end -= 1;
  }

  text(): string {
    let text = `${this.#full}:`;
    for (let i = this.#full; i < this.#end; i++) text += String.fromCharCode(this.#words[i] ?? 0);
    return text;
  }
}
