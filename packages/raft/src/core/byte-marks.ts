/**
 * Bytes that are under way, by the index up to which they reach, oldest first: what was sent, proposed or handed out and
 * is not acknowledged, committed or applied yet. It tells their sum without the entries, which may have left memory.
 */

/** Fewer marks that are done with are not worth moving the others. */
const TRIM_MIN = 64;

export class ByteMarks {
  readonly #last: number[] = [];
  readonly #sizes: number[] = [];
  #head = 0;
  #bytes = 0;

  get count(): number {
    return this.#last.length - this.#head;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** `bytes` more are under way, up to index `last`. */
  add(last: number, bytes: number): void {
    this.#last.push(last);
    this.#sizes.push(bytes);
    this.#bytes += bytes;
  }

  /** What reaches up to `index` is done. */
  freeTo(index: number): void {
    const last = this.#last;
    while (this.#head < last.length && (last[this.#head] ?? 0) <= index) {
      this.#bytes -= this.#sizes[this.#head] ?? 0;
      this.#head++;
    }
    if (this.#head === last.length) this.clear();
    else if (this.#head >= TRIM_MIN && this.#head * 2 >= last.length) {
      last.splice(0, this.#head);
      this.#sizes.splice(0, this.#head);
      this.#head = 0;
    }
  }

  clear(): void {
    this.#last.length = 0;
    this.#sizes.length = 0;
    this.#head = 0;
    this.#bytes = 0;
  }
}
