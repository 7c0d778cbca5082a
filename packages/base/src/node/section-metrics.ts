/**
 * Long sections of the event loop as metrics, without the pauses for garbage collection.
 *
 * SM1. Node reports a pause some time after it. A long section waits for SETTLE_MS; then the pauses within it are
 *      subtracted. Each pause is subtracted once, from the section that ended first after it, which is the innermost.
 * SM2. At most WAITING_MAX sections and PAUSES_MAX pauses are kept; above that, the oldest are settled or forgotten.
 */
import { PerformanceObserver } from 'node:perf_hooks';
import type { Clock, Timer } from '../clock.ts';
import { type LongSection, recordSections } from '../loop-sections.ts';
import type { Gauge, Metrics } from '../metrics.ts';

const LEAST_MS = 5;
const SETTLE_MS = 200;
const WAITING_MAX = 256;
const PAUSES_MAX = 256;
const BUCKETS_SECONDS = [0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 5];

interface Pause {
  readonly startMs: number;
  readonly endMs: number;
}

/** Counts long sections of this thread. Returns a function that ends it. */
export function countSections(metrics: Metrics, clock: Clock): () => void {
  const meter = new SectionMeter(metrics, clock);
  const end = recordSections({ clock, leastMs: LEAST_MS, onLong: (section) => meter.add(section) });
  const observer = new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) meter.paused(startTime, duration);
  });
  observer.observe({ entryTypes: ['gc'] });
  return () => {
    end();
    observer.disconnect();
    meter.stop();
  };
}

/** Subtracts pauses from sections; apart from Node's observer, so that a test gives it both. */
export class SectionMeter {
  readonly #clock: Clock;
  readonly #seconds;
  readonly #longest: Gauge;
  readonly #longestMs = new Map<string, number>();
  readonly #waiting: LongSection[] = [];
  readonly #pauses: Pause[] = [];
  #timer: Timer | undefined;

  constructor(metrics: Metrics, clock: Clock) {
    this.#clock = clock;
    this.#seconds = metrics.histogram({
      name: 'remora_loop_section_seconds',
      help: 'Sections of work that held the event loop for 5 ms or more, by name, without garbage collection.',
      labels: ['section'],
      buckets: BUCKETS_SECONDS,
    });
    this.#longest = metrics.gauge({
      name: 'remora_loop_section_longest_seconds',
      help: 'The longest of these sections since the start, by name.',
      labels: ['section'],
    });
  }

  add(section: LongSection): void {
    this.#waiting.push(section);
    if (this.#waiting.length > WAITING_MAX) this.#settle(); // SM2
    this.#timer ??= this.#clock.setTimer(SETTLE_MS, () => {
      this.#timer = undefined;
      this.#settle();
    });
  }

  paused(startMs: number, durationMs: number): void {
    this.#pauses.push({ startMs, endMs: startMs + durationMs });
    if (this.#pauses.length > PAUSES_MAX) this.#pauses.shift(); // SM2
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#settle();
  }

  #settle(): void {
    for (const { name, startMs, endMs, ownMs } of this.#waiting.splice(0)) {
      const ms = ownMs - this.#takePauses(startMs, endMs);
      if (ms < LEAST_MS) continue;
      this.#seconds.labels(name).observe(ms / 1_000);
      if (ms <= (this.#longestMs.get(name) ?? 0)) continue;
      this.#longestMs.set(name, ms);
      this.#longest.labels(name).set(ms / 1_000);
    }
  }

  /** SM1. */
  #takePauses(startMs: number, endMs: number): number {
    let tookMs = 0;
    for (let i = this.#pauses.length - 1; i >= 0; i--) {
      const pause = this.#pauses[i];
      if (pause === undefined || pause.startMs < startMs || pause.startMs >= endMs) continue;
      tookMs += Math.min(pause.endMs, endMs) - pause.startMs;
      this.#pauses.splice(i, 1);
    }
    return tookMs;
  }
}
