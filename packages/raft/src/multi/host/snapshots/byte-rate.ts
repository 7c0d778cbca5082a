/**
 * A limit on the bytes per second of several senders together. It may change at any time; a grant is paid at the rate
 * of that moment.
 *
 * B1. Over any time the bytes taken are at most the rate times that time, one burst, and one grant per sender.
 * B2. Waiting senders share the rate equally by bytes: grants have one size and go round in turn, and a sender that
 *     moves less at a time uses its grant for longer. An idle sender saves nothing beyond its grant.
 * B3. Each sender has one request at a time, so the number of senders bounds the waiting requests.
 */
import { assert, type Clock, type Timer } from '@remora/base';

const GRANT_BYTES = 64 * 1024;
/** Unused rate is forgotten after this time. */
const BURST_MS = 10;

/** One sender's share of a limit. */
export interface ByteShare {
  /** Resolves when `bytes` may be sent; rejects with the signal's reason. */
  take(bytes: number, signal: AbortSignal): Promise<void>;
  /** The sender is done: the rest of its grant is returned. */
  done(): void;
}

export class ByteRate {
  readonly #clock: Clock;
  readonly #bytesPerSecond: () => number;
  /** In the order of their requests; each receives the cost of its grant, in milliseconds. */
  readonly #waiting = new Set<(costMs: number) => void>();
  /** When everything granted so far is paid for. */
  #paidAtMs = 0;
  #timer: Timer | undefined;

  /** 0 means no limit. */
  constructor(clock: Clock, bytesPerSecond: () => number) {
    this.#clock = clock;
    this.#bytesPerSecond = bytesPerSecond;
  }

  share(): ByteShare {
    let left = 0;
    let costMs = 0;
    let asking = false;
    return {
      take: async (bytes, signal) => {
        signal.throwIfAborted();
        if (this.#bytesPerSecond() === 0) return;
        assert(!asking, 'B3: a sender has one request at a time');
        asking = true;
        try {
          for (; left < bytes; left += GRANT_BYTES) costMs = await this.#grant(signal);
        } finally {
          asking = false;
        }
        left -= bytes;
      },
      done: () => {
        this.#paidAtMs -= (left / GRANT_BYTES) * costMs;
        left = 0;
      },
    };
  }

  /** Resolves with the cost, in milliseconds. */
  #grant(signal: AbortSignal): Promise<number> {
    return new Promise((resolve, reject) => {
      const granted = (costMs: number) => {
        signal.removeEventListener('abort', onAbort);
        resolve(costMs);
      };
      const onAbort = () => {
        this.#waiting.delete(granted);
        reject(signal.reason);
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiting.add(granted);
      this.#grantMore();
    });
  }

  #grantMore(): void {
    if (this.#timer !== undefined) return;
    const now = this.#clock.monotonicMs();
    for (const granted of this.#waiting) {
      if (this.#paidAtMs > now) break;
      this.#waiting.delete(granted);
      const costMs = this.#grantCostMs();
      this.#paidAtMs = Math.max(this.#paidAtMs, now - BURST_MS) + costMs; // B1
      granted(costMs);
    }
    if (this.#waiting.size === 0) return;
    this.#timer = this.#clock.setTimer(this.#paidAtMs - now, () => {
      this.#timer = undefined;
      this.#grantMore();
    });
  }

  #grantCostMs(): number {
    const bytesPerSecond = this.#bytesPerSecond();
    return bytesPerSecond === 0 ? 0 : (GRANT_BYTES / bytesPerSecond) * 1000;
  }
}
