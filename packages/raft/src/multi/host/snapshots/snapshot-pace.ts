/**
 * The pace of a snapshot in progress: limits on waiting, the byte rate, and log lines if it takes long.
 *
 * A1. A snapshot is background work: it gets one piece for each turn of the event loop, whatever the rate allows. So a
 *     busy node, whose turns are long, slows it down automatically, and nothing waits for more than one piece of each
 *     outgoing snapshot.
 */
import type { Clock, Logger } from '@remora/base';
import type { ByteShare } from './byte-rate.ts';

/** Bytes sent at a time, and requested from the rate at a time; larger chunks are cut (A1). */
const PIECE_BYTES_MAX = 64 * 1024;

/** The awaited result did not come in time. */
export class TooLateError extends Error {
  override readonly name = 'TooLateError';
}

/** Returns the result of `work`; rejects with a `TooLateError` if that takes longer. */
export async function within<T>(clock: Clock, limitMs: number, work: Promise<T>, reason: string): Promise<T> {
  let cancel: () => void = () => undefined;
  const late = new Promise<never>((_, reject) => {
    const timer = clock.setTimer(limitMs, () => reject(new TooLateError(reason)));
    cancel = () => timer.cancel();
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    cancel();
  }
}

export interface Pace {
  readonly clock: Clock;
  readonly share: ByteShare;
  readonly signal: AbortSignal;
  /** Longest wait for the next chunk. */
  readonly idleTimeoutMs: number;
  /** Reports sent bytes. */
  readonly sent: (bytes: number) => void;
}

/** Yields the chunks of a snapshot at the pace that the node's limit allows. */
export async function* pacedChunks(chunks: AsyncIterable<Uint8Array>, pace: Pace): AsyncIterable<Uint8Array> {
  const { clock, share, signal, idleTimeoutMs, sent } = pace;
  const source = chunks[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await within(clock, idleTimeoutMs, source.next(), 'the state machine returned no further chunk');
      if (next.done === true) return;
      for (let at = 0; at < next.value.length; at += PIECE_BYTES_MAX) {
        const piece = next.value.subarray(at, at + PIECE_BYTES_MAX);
        await share.take(piece.length, signal);
        sent(piece.length);
        yield piece;
        await new Promise<void>((resolve) => clock.setImmediate(resolve)); // A1
      }
    }
  } finally {
    share.done();
    // Not awaited: a source that hangs would never answer.
    void source.return?.().catch(() => undefined);
  }
}

/** Logs the progress of a long transfer at intervals. */
export class ProgressLog {
  readonly #clock: Clock;
  readonly #logger: Pick<Logger, 'info'>;
  readonly #what: string;
  readonly #fields: Readonly<Record<string, unknown>>;
  readonly #intervalMs: number;
  /** The approximate total of bytes, if known. */
  readonly #total: number | undefined;
  readonly #startMs: number;
  #saidMs: number;
  #bytes = 0;

  constructor(given: {
    readonly clock: Clock;
    readonly logger: Pick<Logger, 'info'>;
    readonly what: string;
    readonly fields: Readonly<Record<string, unknown>>;
    readonly intervalMs: number;
    readonly total?: number | undefined;
  }) {
    this.#clock = given.clock;
    this.#logger = given.logger;
    this.#what = given.what;
    this.#fields = given.fields;
    this.#intervalMs = given.intervalMs;
    this.#total = given.total;
    this.#startMs = given.clock.monotonicMs();
    this.#saidMs = this.#startMs;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(bytes: number): void {
    this.#bytes += bytes;
    const now = this.#clock.monotonicMs();
    if (now - this.#saidMs < this.#intervalMs) return;
    this.#saidMs = now;
    const seconds = (now - this.#startMs) / 1000;
    const total = this.#total ?? 0;
    this.#logger.info(
      {
        ...this.#fields,
        bytes: this.#bytes,
        bytesPerSecond: Math.round(this.#bytes / seconds),
        // The known total is approximate: a transfer in progress is not at its end.
        ...(total > 0 && { percent: Math.min(99, Math.floor((100 * this.#bytes) / total)) }),
      },
      this.#what,
    );
  }
}
