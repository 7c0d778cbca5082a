/**
 * The terms of a log as runs: terms ascend along a log, so a few positions determine the term of every index.
 *
 * T1. Runs are contiguous and their terms ascend: run `i` spans from its first index to the one before run `i + 1`.
 */
import { assert } from '@remora/base';
import type { LogPosition } from './types.ts';

export class TermRuns {
  readonly #first: number[] = [];
  readonly #term: number[] = [];

  constructor(runs: readonly LogPosition[] = []) {
    for (const { index, term } of runs) this.push(index, term);
  }

  get size(): number {
    return this.#first.length;
  }

  /** The term of the last run; undefined if there is none. */
  get lastTerm(): number | undefined {
    return this.#term[this.#term.length - 1];
  }

  /** The log continues at `index` in `term`. */
  push(index: number, term: number): void {
    const last = this.#term.length - 1;
    if (last >= 0 && this.#term[last] === term) return;
    assert(
      last < 0 || ((this.#first[last] ?? 0) < index && (this.#term[last] ?? 0) < term),
      'T1: terms ascend in a log',
    );
    this.#first.push(index);
    this.#term.push(term);
  }

  /** The term at `index`, which must be within the runs. */
  at(index: number): number | undefined {
    return this.#term[this.#runOf(index)];
  }

  /** The largest index at or below `index` whose term is at most `term`; just before the first run if there is none. */
  lastAtMost(index: number, term: number): number {
    let run = this.#runOf(index);
    let at = index;
    while (run >= 0 && (this.#term[run] ?? 0) > term) {
      at = (this.#first[run] ?? 0) - 1;
      run--;
    }
    return at;
  }

  /** Forgets `index` and everything behind it. */
  cutFrom(index: number): void {
    let size = this.#first.length;
    while (size > 0 && (this.#first[size - 1] ?? 0) >= index) size--;
    this.#first.length = size;
    this.#term.length = size;
  }

  /** Forgets everything up to `index`. `lastIndex` is the log's last index. */
  cutTo(index: number, lastIndex: number): void {
    if (index >= lastIndex) {
      this.cutFrom(0);
      return;
    }
    const run = this.#runOf(index + 1);
    if (run < 0) return;
    this.#first.splice(0, run);
    this.#term.splice(0, run);
    if ((this.#first[0] ?? 0) <= index) this.#first[0] = index + 1;
  }

  /** The position of the run with `index`; -1 if it is before all of them. */
  #runOf(index: number): number {
    const first = this.#first;
    let high = first.length - 1;
    if (high < 0 || index >= (first[high] ?? 0)) return high;
    let low = -1;
    while (high - low > 1) {
      const middle = (low + high) >>> 1;
      if ((first[middle] ?? 0) <= index) low = middle;
      else high = middle;
    }
    return low;
  }
}
