/**
 * A limit on the bytes per second of several senders together.
 *
 * B1. Over any time the bytes granted are at most the rate times that time, and one burst and one grant more.
 * B2. Senders that wait share the rate equally by bytes, whatever the sizes that they ask for (start-time fair queueing,
 *     Goyal, Vin and Cheng 1996). One that was idle saves nothing up.
 * B3. Each sender has one request at a time, so what waits is bounded by the number of senders.
 */
import { assert, type Clock, type Timer } from '@remora/base';

/** What was not used is forgotten beyond this time. */
const BURST_MS = 50;

interface Request {
  readonly tag: number;
  readonly bytes: number;
  readonly grant: () => void;
}

/** One sender's part of a limit. */
export interface ByteShare {
  /** Resolves when `bytes` may be sent; rejects with the signal's reason. */
  take(bytes: number, signal: AbortSignal): Promise<void>;
}

export class ByteRate {
  readonly #clock: Clock;
  readonly #bytesPerSecond: number;
  readonly #waiting = new Set<Request>();
  /** When everything granted so far is paid for. */
  #paidAtMs = 0;
  /** The tag of the last request granted: where a sender that was idle joins in (B2). */
  #virtual = 0;
  #timer: Timer | undefined;

  /** 0 means no limit. */
  constructor(clock: Clock, bytesPerSecond: number) {
    this.#clock = clock;
    this.#bytesPerSecond = bytesPerSecond;
  }

  share(): ByteShare {
    let served = 0;
    let asking = false;
    return {
      take: async (bytes, signal) => {
        signal.throwIfAborted();
        if (this.#bytesPerSecond === 0) return;
        assert(!asking, 'B3: a sender has one request at a time');
        asking = true;
        const tag = Math.max(served, this.#virtual);
        try {
          await this.#wait({ tag, bytes }, signal);
          served = tag + bytes;
        } finally {
          asking = false;
        }
      },
    };
  }

  #wait(asked: Omit<Request, 'grant'>, signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const request: Request = {
        ...asked,
        grant: () => {
          signal.removeEventListener('abort', onAbort);
          resolve();
        },
      };
      const onAbort = () => {
        this.#waiting.delete(request);
        reject(signal.reason);
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiting.add(request);
      this.#grantMore();
    });
  }

  #grantMore(): void {
    if (this.#timer !== undefined) return;
    const now = this.#clock.monotonicMs();
    while (this.#waiting.size > 0 && this.#paidAtMs <= now) {
      const next = [...this.#waiting].reduce((least, request) => (request.tag < least.tag ? request : least));
      this.#waiting.delete(next);
      this.#virtual = next.tag;
      this.#paidAtMs = Math.max(this.#paidAtMs, now - BURST_MS) + (next.bytes / this.#bytesPerSecond) * 1000; // B1
      next.grant();
    }
    if (this.#waiting.size === 0) return;
    this.#timer = this.#clock.setTimer(this.#paidAtMs - now, () => {
      this.#timer = undefined;
      this.#grantMore();
    });
  }
}
