/**
 * A limit on the bytes per second of several senders together.
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
  readonly #bytesPerSecond: number;
  /** In the order in which they asked. */
  readonly #waiting = new Set<() => void>();
  /** When everything granted so far is paid for. */
  #paidAtMs = 0;
  #timer: Timer | undefined;

  /** 0 means no limit. */
  constructor(clock: Clock, bytesPerSecond: number) {
    this.#clock = clock;
    this.#bytesPerSecond = bytesPerSecond;
  }

  share(): ByteShare {
    let left = 0;
    let asking = false;
    return {
      take: async (bytes, signal) => {
        signal.throwIfAborted();
        if (this.#bytesPerSecond === 0) return;
        assert(!asking, 'B3: a sender has one request at a time');
        asking = true;
        try {
          for (; left < bytes; left += GRANT_BYTES) await this.#grant(signal);
        } finally {
          asking = false;
        }
        left -= bytes;
      },
      done: () => {
        if (left > 0) this.#paidAtMs -= this.#costMs(left);
        left = 0;
      },
    };
  }

  #grant(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const granted = () => {
        signal.removeEventListener('abort', onAbort);
        resolve();
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
      this.#paidAtMs = Math.max(this.#paidAtMs, now - BURST_MS) + this.#costMs(GRANT_BYTES); // B1
      granted();
    }
    if (this.#waiting.size === 0) return;
    this.#timer = this.#clock.setTimer(this.#paidAtMs - now, () => {
      this.#timer = undefined;
      this.#grantMore();
    });
  }

  #costMs(bytes: number): number {
    return (bytes / this.#bytesPerSecond) * 1000;
  }
}
