/**
 * Cuts the body of a request into messages: one octet that says whether the message is compressed, four with its
 * length, and the message.
 *
 * M1. A message that lies whole in what has arrived is passed on in place. Otherwise it is gathered in memory that
 *     grows with what has arrived: at most twice as much, whatever length is announced.
 * M2. All memory that is kept is counted (`hold`).
 */
export const PREFIX_BYTES = 5;

/** Takes messages. */
export interface MessageSink {
  /** Returns false if no further message is wanted. */
  onMessage(isCompressed: boolean, message: Buffer): boolean;
  /** A message announces this length. Returns false if it is too long. */
  isLengthAllowed(bytes: number): boolean;
  /** A message has begun and is not whole. */
  messageBegun(): void;
  /** Counts bytes that are kept, or kept no more if negative. */
  hold(bytes: number): void;
}

const CAPACITY_MIN = 256;
const NOTHING = Buffer.alloc(0);

export class MessageReader {
  readonly #sink: MessageSink;
  #prefix: Buffer | undefined;
  #prefixBytes = 0;
  #length = 0;
  #isCompressed = false;
  /** The message so far. */
  #body: Buffer = NOTHING;
  #bodyBytes = 0;

  constructor(sink: MessageSink) {
    this.#sink = sink;
  }

  /** Whether a message has begun and is not whole. */
  get isInside(): boolean {
    return this.#prefixBytes > 0;
  }

  /** Reads `bytes[start, end)`. Returns how far it came: before the end only if the sink wanted no more. */
  read(bytes: Buffer, start: number, end: number): number {
    let at = start;
    while (at < end) {
      if (this.#prefixBytes < PREFIX_BYTES) {
        at = this.#readPrefix(bytes, at, end);
        if (at < 0) return end;
        if (this.#prefixBytes < PREFIX_BYTES) break;
      }
      const missing = this.#length - this.#bodyBytes;
      if (end - at < missing) {
        this.#keep(bytes, at, end);
        at = end;
        break;
      }
      const message =
        this.#bodyBytes === 0 ? bytes.subarray(at, at + missing) : this.#completed(bytes, at, at + missing);
      at += missing;
      this.#prefixBytes = 0;
      if (!this.#sink.onMessage(this.#isCompressed, message)) return at;
    }
    if (this.isInside) this.#sink.messageBegun();
    return at;
  }

  /** Returns a negative number if the message is too long. */
  #readPrefix(bytes: Buffer, start: number, end: number): number {
    let prefix = bytes;
    let from = start;
    let at = start;
    if (this.#prefixBytes > 0 || end - start < PREFIX_BYTES) {
      this.#prefix ??= Buffer.allocUnsafe(PREFIX_BYTES);
      while (at < end && this.#prefixBytes < PREFIX_BYTES) this.#prefix[this.#prefixBytes++] = bytes[at++] ?? 0;
      if (this.#prefixBytes < PREFIX_BYTES) return at;
      prefix = this.#prefix;
      from = 0;
    } else {
      this.#prefixBytes = PREFIX_BYTES;
      at += PREFIX_BYTES;
    }
    this.#isCompressed = prefix[from] !== 0;
    this.#length = prefix.readUInt32BE(from + 1);
    if (!this.#sink.isLengthAllowed(this.#length)) return -1;
    if (this.#length === 0 && at === end) {
      this.#prefixBytes = 0;
      this.#sink.onMessage(this.#isCompressed, NOTHING);
    }
    return at;
  }

  /** M1 */
  #keep(bytes: Buffer, start: number, end: number): void {
    const needed = this.#bodyBytes + end - start;
    if (needed > this.#body.length) {
      const capacity = Math.min(this.#length, Math.max(CAPACITY_MIN, 2 * needed));
      const body = Buffer.allocUnsafeSlow(capacity);
      this.#body.copy(body, 0, 0, this.#bodyBytes);
      this.#sink.hold(capacity - this.#body.length);
      this.#body = body;
    }
    bytes.copy(this.#body, this.#bodyBytes, start, end);
    this.#bodyBytes = needed;
  }

  #completed(bytes: Buffer, start: number, end: number): Buffer {
    this.#keep(bytes, start, end);
    const message = this.#body.subarray(0, this.#length);
    this.#sink.hold(-this.#body.length);
    this.#body = NOTHING;
    this.#bodyBytes = 0;
    return message;
  }
}
