/**
 * A limit on the bytes per second of several senders together. It may change at any time; what is granted is paid at
 * the rate of that moment.
 *
 * B1. Over any time the bytes taken are at most the rate times that time, one burst, and one grant per sender.
 * B2. Senders that wait share the rate equally by bytes: grants are of one size and go round in turn, and a sender that
 *     moves less at a time draws on its grant for longer. One that was idle saves nothing up beyond its grant.
 * B3. Each sender has one request at a time, so what waits is bounded by the number of senders.
 */
import { assert, type Clock, type Timer } from '@remora/base';

const GRANT_BYTES = 64 * 1024;
/** What was not used is forgotten beyond this time. */
const BURST_MS = 10;

/** One sender's part of a limit. */
export interface ByteShare {
  /** Resolves when `bytes` may be sent; rejects with the signal's reason. */
  take(bytes: number, signal: AbortSignal): Promise<void>;
  /** The sender is done: what is left of its grant goes back. */
  done(): void;
}

export class ByteRate {
  readonly #clock: Clock;
  readonly #bytesPerSecond: () => number;
  /** In the order in which they asked; told what the grant costs, in milliseconds. */
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

  /** Resolves with what it costs, in milliseconds. */
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
