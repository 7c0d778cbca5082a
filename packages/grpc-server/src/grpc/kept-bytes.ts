/**
 * What has arrived for a call that is paused, in one piece of memory: requests may come octet by octet, and an object
 * for each part would take a hundred times as much memory as the parts.
 *
 * KB1. All memory that is kept is counted (`hold`); it is at most `CAPACITY_MIN`, or twice of what was kept at a time.
 * KB2. Memory that was read is not written again, so what was cut out of it stays as it is.
 * KB3. Bytes are copied once as they arrive, and again only when as many have arrived: reading a part copies nothing.
 */
const CAPACITY_MIN = 256;
const NOTHING = Buffer.alloc(0);

export class KeptBytes {
  readonly #hold: (bytes: number) => void;
  bytes: Buffer = NOTHING;
  /** What is kept is `bytes[start, end)`. */
  start = 0;
  end = 0;

  constructor(hold: (bytes: number) => void) {
    this.#hold = hold;
  }

  get isEmpty(): boolean {
    return this.start === this.end;
  }

  add(bytes: Buffer, start: number, end: number): void {
    if (end - start > this.bytes.length - this.end) this.#grow(this.end - this.start + end - start);
    this.end += bytes.copy(this.bytes, this.end, start, end);
  }

  /** Everything before `at` has been read. */
  readTo(at: number): void {
    this.start = at;
    if (!this.isEmpty) return;
    this.#hold(-this.bytes.length);
    this.bytes = NOTHING;
    this.start = 0;
    this.end = 0;
  }

  /** KB1, KB2, KB3. */
  #grow(needed: number): void {
    const grown = Buffer.allocUnsafeSlow(Math.max(CAPACITY_MIN, 2 * needed));
    this.end = this.bytes.copy(grown, 0, this.start, this.end);
    this.start = 0;
    this.#hold(grown.length - this.bytes.length);
    this.bytes = grown;
  }
}
