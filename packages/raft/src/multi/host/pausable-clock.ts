import type { Clock, ManualClock, Timer } from '@remora/base';
import type { Transport } from '../ports.ts';

/** A node's own view of the clock, and of its input: while it is paused (SIGSTOP) nothing of it runs, and all waits. */
export class PausableClock implements Clock {
  readonly #clock: ManualClock;
  #paused = false;
  #waiting: (() => void)[] = [];

  constructor(clock: ManualClock) {
    this.#clock = clock;
  }

  wallMs(): number {
    return this.#clock.wallMs();
  }

  monotonicMs(): number {
    return this.#clock.monotonicMs();
  }

  setTimer(delayMs: number, fn: () => void): Timer {
    let cancelled = false;
    const timer = this.#clock.setTimer(delayMs, () => this.run(() => !cancelled && fn()));
    return {
      cancel: () => {
        cancelled = true;
        timer.cancel();
      },
    };
  }

  setImmediate(fn: () => void): void {
    this.#clock.setImmediate(() => this.run(fn));
  }

  run(fn: () => void): void {
    if (this.#paused) this.#waiting.push(fn);
    else fn();
  }

  pause(): void {
    this.#paused = true;
  }

  resume(): void {
    this.#paused = false;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const fn of waiting) fn();
  }

  /** The transport with its input under this clock. */
  wrap(inner: Transport): Transport {
    return {
      start: (handlers) =>
        inner.start({
          onMessages: (from, messages) => this.run(() => handlers.onMessages(from, messages)),
          onHeartbeat: (from, frame) => this.run(() => handlers.onHeartbeat(from, frame)),
          onSnapshot: (from, header) => handlers.onSnapshot(from, header),
          onUnreachable: (node) => this.run(() => handlers.onUnreachable(node)),
        }),
      send: (node, messages) => inner.send(node, messages),
      sendHeartbeat: (node, frame) => inner.sendHeartbeat(node, frame),
      sendSnapshot: (node, header, chunks, signal) => inner.sendSnapshot(node, header, chunks, signal),
      stop: () => inner.stop(),
    };
  }
}
