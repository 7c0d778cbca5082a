/**
 * Bytes in flight, each with the last index that they cover, oldest first: data that was sent, proposed or handed out,
 * and is not yet acknowledged, committed or applied. The sum is known without the entries, which may have left memory.
 */

/** With fewer completed marks, moving the others is not worthwhile. */
const TRIM_MIN = 64;
/** Space for this many marks is kept when all are completed: every group has several lists. */
const KEPT_MAX = 32;

export class ByteMarks {
  /** Marks are at places `#head` to `#end`; the places behind them are unused. */
  #last: number[] = [];
  #sizes: number[] = [];
  #head = 0;
  #end = 0;
  #bytes = 0;

  get count(): number {
    return this.#end - this.#head;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** `bytes` more are in flight, up to index `last`. */
  add(last: number, bytes: number): void {
    this.#last[this.#end] = last;
    this.#sizes[this.#end] = bytes;
    this.#end++;
    this.#bytes += bytes;
  }

  /** Everything up to `index` is completed. */
  freeTo(index: number): void {
    while (this.#head < this.#end && (this.#last[this.#head] ?? 0) <= index) {
      this.#bytes -= this.#sizes[this.#head] ?? 0;
      this.#head++;
    }
    if (this.#head === this.#end) this.clear();
    else if (this.#head >= TRIM_MIN && this.#head * 2 >= this.#end) {
      this.#last = this.#last.slice(this.#head, this.#end);
      this.#sizes = this.#sizes.slice(this.#head, this.#end);
      this.#end -= this.#head;
      this.#head = 0;
    }
  }

  clear(): void {
    if (this.#last.length > KEPT_MAX) {
      this.#last = [];
      this.#sizes = [];
    }
    this.#head = 0;
    this.#end = 0;
    this.#bytes = 0;
  }
}
