/** Messages of one stream that wait to be sent, and what ends them. */
export class SendQueue {
  readonly #messages: Buffer[] = [];
  /** Of the first message, so many bytes have been sent. */
  #sent = 0;
  bytes = 0;
  /** The header block that ends the stream behind the messages; undefined while there may be more. */
  trailers: Buffer | undefined;
  /** The last tick of the connection at which something was sent or began to wait. */
  movedAtTick = 0;
  /** Whether the user was told to wait. */
  isAwaited = false;

  /** Messages that are not wholly sent. */
  get messages(): number {
    return this.#messages.length;
  }

  push(message: Buffer): void {
    this.#messages.push(message);
    this.bytes += message.length;
  }

  /** Passes the next `bytes` bytes to `write`, in pieces. They must be there. */
  take(bytes: number, write: (piece: Buffer) => void): void {
    let left = bytes;
    let done = 0;
    while (left > 0) {
      const message = this.#messages[done];
      if (message === undefined) break;
      const until = Math.min(message.length, this.#sent + left);
      write(this.#sent === 0 && until === message.length ? message : message.subarray(this.#sent, until));
      left -= until - this.#sent;
      if (until === message.length) {
        this.#sent = 0;
        done++;
      } else this.#sent = until;
    }
    this.bytes -= bytes - left;
    if (done > 0) this.#messages.splice(0, done);
  }
}
