import { gunzipSync } from 'node:zlib';
import type { Timers } from '../timers.ts';
import type { GrpcLimits } from './limits.ts';
import { STATUS } from './status.ts';

/** Why a message is refused. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly limit?: keyof GrpcLimits;
}

const SECOND_MS = 1_000;
/** An inflation counts as this much at least: it has a cost of its own. */
const BYTES_MIN = 4 << 10;

/**
 * Inflates compressed messages.
 *
 * I1. No message inflates to more than `messageBytesMax`, and inflating stops there.
 * I2. All together inflate to at most `inflatedBytesPerSecondMax` bytes a second, and one message: it is done on the
 *     spot, so this bounds how long others wait for it.
 */
export class Inflater {
  readonly #limits: GrpcLimits;
  readonly #timers: Timers;
  #sinceMs = 0;
  #bytes = 0;

  constructor(limits: GrpcLimits, timers: Timers) {
    this.#limits = limits;
    this.#timers = timers;
  }

  inflate(message: Buffer): Buffer | Refusal {
    const nowMs = this.#timers.monotonicMs();
    if (nowMs - this.#sinceMs >= SECOND_MS) {
      this.#sinceMs = nowMs;
      this.#bytes = 0;
    }
    if (this.#bytes > this.#limits.inflatedBytesPerSecondMax) {
      const limit = 'inflatedBytesPerSecondMax';
      return { status: STATUS.resourceExhausted, message: 'too many compressed messages; retry in a second', limit };
    }
    try {
      const inflated = gunzipSync(message, { maxOutputLength: this.#limits.messageBytesMax }); // I1
      this.#bytes += Math.max(BYTES_MIN, inflated.length);
      return inflated;
    } catch (error) {
      this.#bytes += this.#limits.messageBytesMax;
      return this.#refusal(error);
    }
  }

  #refusal(error: unknown): Refusal {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ERR_BUFFER_TOO_LARGE') {
      return { status: STATUS.internal, message: 'a compressed message cannot be inflated as gzip' };
    }
    const message = `a message inflates to more than ${this.#limits.messageBytesMax} bytes`;
    return { status: STATUS.resourceExhausted, message, limit: 'messageBytesMax' };
  }
}
