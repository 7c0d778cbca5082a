import { clearInterval, setInterval } from 'node:timers';
import type { ClientPorts } from 'remora';

/** Longer than any wait: the timer only has to exist. */
const FOREVER_MS = 2 ** 31 - 1;

/** Keeps the process alive while a client waits for something, or has a session, as the SDK does outside of tests. */
export class KeepAlive {
  #holders = 0;
  #timer: NodeJS.Timeout | undefined;

  readonly port: ClientPorts['liveness'] = {
    hold: () => {
      this.#holders++;
      this.#timer ??= setInterval(() => {}, FOREVER_MS);
    },
    release: () => {
      this.#holders--;
      if (this.#holders === 0) this.end();
    },
  };

  /** Runs work during which the process stays alive. */
  async during<T>(work: Promise<T>): Promise<T> {
    this.port.hold();
    try {
      return await work;
    } finally {
      this.port.release();
    }
  }

  end(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
