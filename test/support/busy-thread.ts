import type { Clock, Timer } from '@remora/base';

/** The clock of a thread that may be busy: time passes for it, but none of its timers run until it is free. */
export class BusyThread implements Clock {
  readonly #clock: Clock;
  #busy = false;
  readonly #late: (() => void)[] = [];

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  wallMs(): number {
    return this.#clock.wallMs();
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs();
  }

  setTimer(delayMs: number, fn: () => void): Timer {
    let wanted = true;
    const timer = this.#clock.setTimer(delayMs, () => this.#run(() => wanted && fn()));
    return {
      cancel() {
        wanted = false;
        timer.cancel();
      },
    };
  }

  setImmediate(fn: () => void): void {
    this.#clock.setImmediate(() => this.#run(fn));
  }

  begin(): void {
    this.#busy = true;
  }

  end(): void {
    this.#busy = false;
    for (const fn of this.#late.splice(0)) fn();
  }

  #run(fn: () => void): void {
    if (this.#busy) this.#late.push(fn);
    else fn();
  }
}
