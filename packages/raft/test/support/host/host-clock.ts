import type { Clock, Timer } from '@remora/base';
import type { ManualClock } from '@remora/base/testing';
import type { Transport } from '../../../src/multi/ports.ts';

/**
 * A node's own view of the clock, and of its input: its time runs at a rate of its own; while it is paused (SIGSTOP)
 * nothing of it runs, and all waits; while it is suspended its monotonic time stands still, too.
 */
export class PausableClock implements Clock {
  readonly #clock: ManualClock;
  readonly #rate: number;
  #paused = false;
  #waiting: (() => void)[] = [];
  /** True time at which the machine was suspended, and true time that the monotonic clock has missed. */
  #suspendedAt: number | undefined;
  #missedMs = 0;

  constructor(clock: ManualClock, rate = 1) {
    this.#clock = clock;
    this.#rate = rate;
  }

  wallMs(): number {
    return this.#clock.wallMs();
  }

  monotonicMs(): number {
    return ((this.#suspendedAt ?? this.#clock.monotonicMs()) - this.#missedMs) * this.#rate;
  }

  setTimer(delayMs: number, fn: () => void): Timer {
    let cancelled = false;
    const timer = this.#clock.setTimer(delayMs / this.#rate, () => this.run(() => !cancelled && fn()));
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

  /** Pauses it together with its monotonic clock; the wall clock goes on. */
  suspend(): void {
    this.#paused = true;
    this.#suspendedAt ??= this.#clock.monotonicMs();
  }

  get paused(): boolean {
    return this.#paused;
  }

  resume(): void {
    this.#paused = false;
    if (this.#suspendedAt !== undefined) this.#missedMs += this.#clock.monotonicMs() - this.#suspendedAt;
    this.#suspendedAt = undefined;
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
          onGone: (node) => this.run(() => handlers.onGone(node)),
        }),
      send: (node, messages) => inner.send(node, messages),
      sendHeartbeat: (node, frame) => inner.sendHeartbeat(node, frame),
      sendSnapshot: (node, header, chunks, signal, resumed) =>
        inner.sendSnapshot(node, header, chunks, signal, resumed),
      stop: () => inner.stop(),
    };
  }
}
