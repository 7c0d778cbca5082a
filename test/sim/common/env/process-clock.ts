/**
 * Time and life of one simulated process.
 *
 * P1. While it is paused (SIGSTOP) or its machine is suspended nothing of it runs; overdue callbacks run when it
 *     continues.
 * P2. Nothing that a killed process had set ever runs, nor what it sets while it dies in the middle of its work; its
 *     successor begins without timers.
 * P3. Monotonic time of a process runs at its own rate, and stands still while the machine is suspended. Wall time
 *     continues, and jumps. No two clocks may be compared.
 * P4. Everything that happens to a process goes through `enter`, so that the checks examine it after each time.
 */
import type { Clock, Timer } from '@remora/base';
import type { SimLoop } from './loop.ts';

const WALL_START_MS = 1_700_000_000_000;

export class ProcessClock implements Clock {
  readonly #loop: SimLoop;
  readonly #looked: () => void;
  readonly #ownRate: number;
  #rate: number;
  /** Monotonic time at `#sinceMs` of the loop. */
  #baseMs: number;
  #sinceMs: number;
  #wallOffsetMs = 0;
  #suspended = false;
  #suspendedAtMs = 0;
  #life = 0;
  #alive = false;
  #paused = false;
  #waiting: (() => void)[] = [];
  /** Timers of this life that are set. */
  #timers = 0;

  /** `looked` is called after every action of the process; `rate` is the own rate of the machine's clock. */
  constructor(loop: SimLoop, offsetMs: number, looked: () => void, rate = 1) {
    this.#loop = loop;
    this.#looked = looked;
    this.#ownRate = rate;
    this.#rate = rate;
    this.#baseMs = offsetMs;
    this.#sinceMs = 0;
  }

  monotonicMs(): number {
    if (this.#suspended) return this.#baseMs;
    return this.#baseMs + (this.#loop.monotonicMs() - this.#sinceMs) * this.#rate;
  }

  wallMs(): number {
    return Math.floor(WALL_START_MS + this.monotonicMs() + this.#wallOffsetMs);
  }

  setTimer(delayMs: number, fn: () => void): Timer {
    if (!this.#alive) return { cancel: () => {} };
    const dueMs = this.monotonicMs() + Math.max(0, delayMs);
    const life = this.#life;
    let open = true;
    this.#timers++;
    const end = (): void => {
      if (open && life === this.#life) this.#timers--;
      open = false;
    };
    let inner: Timer;
    const arm = (): void => {
      inner = this.#loop.setTimer((dueMs - this.monotonicMs()) / this.#rate, due);
    };
    const due = this.bind(() => {
      if (!open) return;
      // The machine was suspended, or its clock runs slower since: not due yet.
      if (this.monotonicMs() < dueMs - 1e-6) return arm();
      end();
      fn();
    });
    arm();
    return {
      cancel: () => {
        end();
        inner.cancel();
      },
    };
  }

  setImmediate(fn: () => void): void {
    this.#loop.setImmediate(this.bind(fn));
  }

  /** Timers of this life that are set and have neither fired nor been cancelled. */
  get pendingTimers(): number {
    return this.#timers;
  }

  get paused(): boolean {
    return this.#paused;
  }

  /** Wraps `fn` as an event of this life of the process. */
  bind(fn: () => void): () => void {
    const enter = this.door();
    return () => enter(fn);
  }

  /** How outside events enter this life of the process (P1, P2, P4). */
  door(): (fn: () => void) => void {
    const life = this.#life;
    const enter = (fn: () => void): void => {
      if (!this.#alive || life !== this.#life) return;
      if (this.#paused) {
        this.#waiting.push(fn);
        return;
      }
      fn();
      this.#looked();
    };
    return enter;
  }

  pause(): void {
    this.#paused = true;
  }

  /** A paused process whose monotonic clock stands still as well. */
  suspend(): void {
    this.#paused = true;
    this.#baseMs = this.monotonicMs();
    this.#suspended = true;
    this.#suspendedAtMs = this.#loop.monotonicMs();
  }

  resume(): void {
    if (this.#suspended) {
      this.#suspended = false;
      this.#wallOffsetMs += (this.#loop.monotonicMs() - this.#suspendedAtMs) * this.#rate;
      this.#sinceMs = this.#loop.monotonicMs();
    }
    this.#paused = false;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const fn of waiting) this.#loop.setImmediate(this.bind(fn));
  }

  /** From now on monotonic time runs `rate` times as fast as the world's. */
  setRate(rate: number): void {
    this.#baseMs = this.monotonicMs();
    this.#sinceMs = this.#loop.monotonicMs();
    this.#rate = rate;
  }

  /** From now on it runs at its own rate. */
  resetRate(): void {
    this.setRate(this.#ownRate);
  }

  jumpWall(ms: number): void {
    this.#wallOffsetMs += ms;
  }

  /** A life begins. */
  begin(): void {
    this.#life++;
    this.#timers = 0;
    this.#alive = true;
  }

  kill(): void {
    this.#alive = false;
    this.#life++;
    this.#timers = 0;
    this.#waiting = [];
    if (this.#paused) this.resume();
  }
}
