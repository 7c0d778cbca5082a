/** A map from indexes to numbers, kept as runs: sorted, disjoint, and joined where neighbours have the same number. */
export class IndexRuns {
  readonly #first: number[] = [];
  readonly #last: number[] = [];
  readonly #value: number[] = [];

  /** Assigns this number to `first..last`. */
  set(first: number, last: number, value: number): void {
    const end = this.#last.length - 1;
    if (end < 0 || first > (this.#last[end] ?? 0)) {
      if (end >= 0 && this.#joins(end, first, value)) this.#last[end] = last;
      else this.#insert(end + 1, { first, last, value });
      return;
    }
    const at = this.#clear(first, last);
    this.#insert(at, { first, last, value });
    this.#join(at + 1);
    this.#join(at);
  }

  /** Forgets `index` and everything behind it. */
  cutFrom(index: number): void {
    let size = this.#first.length;
    while (size > 0 && (this.#first[size - 1] ?? 0) >= index) size--;
    this.#first.length = size;
    this.#last.length = size;
    this.#value.length = size;
    if (size > 0 && (this.#last[size - 1] ?? 0) >= index) this.#last[size - 1] = index - 1;
  }

  /** Forgets `index` and everything before it. */
  cutTo(index: number): void {
    this.#clear(0, index);
  }

  forEach(visit: (first: number, last: number, value: number) => void): void {
    for (let i = 0; i < this.#first.length; i++) visit(this.#first[i] ?? 0, this.#last[i] ?? 0, this.#value[i] ?? 0);
  }

  /** Forgets `first..last`; returns the position for runs of these indexes. */
  #clear(first: number, last: number): number {
    const from = this.#firstEndingAtOrAfter(first);
    let to = from;
    while (to < this.#first.length && (this.#first[to] ?? 0) <= last) to++;
    if (to === from) return from;
    const head = { first: this.#first[from] ?? 0, last: first - 1, value: this.#value[from] ?? 0 };
    const tail = { first: last + 1, last: this.#last[to - 1] ?? 0, value: this.#value[to - 1] ?? 0 };
    for (const column of [this.#first, this.#last, this.#value]) column.splice(from, to - from);
    if (tail.first <= tail.last) this.#insert(from, tail);
    if (head.first > head.last) return from;
    this.#insert(from, head);
    return from + 1;
  }

  #firstEndingAtOrAfter(index: number): number {
    let [low, high] = [0, this.#last.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#last[middle] ?? 0) < index) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  #insert(at: number, run: { readonly first: number; readonly last: number; readonly value: number }): void {
    this.#first.splice(at, 0, run.first);
    this.#last.splice(at, 0, run.last);
    this.#value.splice(at, 0, run.value);
  }

  #joins(before: number, first: number, value: number): boolean {
    return this.#last[before] === first - 1 && this.#value[before] === value;
  }

  /** Joins the run at `at` with the one before it, if it continues that one. */
  #join(at: number): void {
    if (at < 1 || at >= this.#first.length) return;
    if (!this.#joins(at - 1, this.#first[at] ?? 0, this.#value[at] ?? 0)) return;
    this.#last[at - 1] = this.#last[at] ?? 0;
    for (const column of [this.#first, this.#last, this.#value]) column.splice(at, 1);
  }
}
