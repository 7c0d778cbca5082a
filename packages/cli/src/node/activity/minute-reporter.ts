import type { Clock } from '@remora/base';
import { type HeatColumns, MINUTE_MS, type MinuteReport, type NodeNow } from '@remora/protocol';
import type { Counted, RateMeter } from './rate-meter.ts';

export interface MinuteReporterDeps {
  readonly clock: Clock;
  readonly meter: RateMeter;
  /** The load on the node's ranges by key since the last call; undefined: there was none. */
  readonly heat: () => HeatColumns | undefined;
}

/** `now` looks back at least this far, and at most so far that the last seconds are shown. */
const NOW_MIN_MS = 900;
const NOW_MAX_MS = 5_000;

/**
 * What a node reports of each minute, and what it counts now.
 *
 * MN1. A minute ends when the wall clock begins another one, so that all nodes report the same minutes. If the clock is
 *      set back or ahead, the minute is shorter or longer; rates are per second of monotonic time.
 * MN2. The report of a minute is part of each heartbeat until one was answered, or until the next minute has ended. A
 *      minute for which no master was reached is lost.
 * MN3. `now` counts nothing by itself: it compares what is counted anyway with what it was some seconds ago, for
 *      several callers in turn. Nothing is kept while nobody asks.
 */
export class MinuteReporter {
  readonly #deps: MinuteReporterDeps;
  /** What was counted when the present minute began. */
  #began: Counted;
  #minute: number;
  #report: MinuteReport | undefined;
  #isSent = false;
  /** What earlier calls of `now` saw, the oldest first. */
  #seen: Counted[] = [];

  constructor(deps: MinuteReporterDeps) {
    this.#deps = deps;
    this.#minute = this.#wallMinute();
    this.#began = deps.meter.counted();
  }

  #wallMinute(): number {
    return Math.floor(this.#deps.clock.wallMs() / MINUTE_MS);
  }

  /** Called for each heartbeat. `wasAnswered`: the last one was. MN2. */
  forHeartbeat(wasAnswered: boolean): { readonly minute?: MinuteReport } {
    if (this.#isSent && wasAnswered) this.#report = undefined;
    this.#isSent = false;
    if (this.#wallMinute() !== this.#minute) this.#endMinute(); // MN1
    if (this.#report === undefined) return {};
    this.#isSent = true;
    return { minute: this.#report };
  }

  #endMinute(): void {
    const { meter, heat } = this.#deps;
    const counted = meter.counted();
    const load = heat();
    const rates = meter.between(this.#began, counted);
    this.#report = { minute: this.#minute, rates, ...(load !== undefined && { heat: load }) };
    this.#began = counted;
    this.#minute = this.#wallMinute();
  }

  /** MN3. */
  now(): NodeNow {
    const { meter } = this.#deps;
    const counted = meter.counted();
    const recent = this.#seen.filter(({ atMs }) => counted.atMs - atMs <= NOW_MAX_MS);
    // Callers within a second see the same past.
    const newest = recent.at(-1);
    if (newest === undefined || counted.atMs - newest.atMs >= NOW_MIN_MS) recent.push(counted);
    this.#seen = recent;
    const from = recent.find(({ atMs }) => counted.atMs - atMs >= NOW_MIN_MS) ?? this.#began;
    return { spanMs: counted.atMs - from.atMs, rates: meter.between(from, counted) };
  }
}
