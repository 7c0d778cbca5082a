/**
 * Compares the clocks of a node with those of the masters' leader, by the times that come with its answers to
 * heartbeats.
 *
 * CC1. The leader reads its clocks between the sending of a heartbeat and the arrival of the answer. So the middle of
 *      that span is wrong by at most half of the round trip. A difference counts only where it exceeds this error.
 * CC2. Rates are compared over spans of at least a minute, from the readings of one leader in one life. A virtual
 *      machine that was paused falls behind once, so a difference counts only if two spans in a row show it.
 */

/** What came with an answer, and when it was asked for; all in milliseconds. */
export interface ClockReading {
  /** The node whose clocks these are. */
  readonly leader: number;
  readonly leaderWallMs: number;
  readonly leaderMonotonicMs: number;
  /** By this node's monotonic clock. */
  readonly sentMs: number;
  readonly receivedMs: number;
  /** This node's wall time when the answer arrived. */
  readonly wallMs: number;
}

export interface ClockDifference {
  readonly leader: number;
  /** By how much this node's wall clock is ahead of the leader's; 0 if that is no problem. */
  readonly aheadMs: number;
  /** By how much this node's clock runs faster than the leader's, in percent; 0 if that is no problem. */
  readonly fasterPercent: number;
}

/** As etcd's limit for a difference that it warns of. Certificates, tokens and audit logs depend on wall time. */
const AHEAD_MS_MAX = 1_000;
/** A fifth of what leases assume (`CLOCK_DRIFT_PERCENT`); sound clocks differ by less than a tenth of this. */
const FASTER_PERCENT_MAX = 1;
/** CC2. */
const SPAN_MS = 60_000;
/** A leader that has restarted counts from another moment: no clock is off by so much. */
const RESTARTED_PERCENT = 50;
/** The best reading of this time is used (CC1). */
const READING_AGE_MS_MAX = 10_000;

export class ClockComparison {
  #best: ClockReading | undefined;
  /** Where the present span began. */
  #from: ClockReading | undefined;
  /** What the last two spans showed, in percent beyond their error. */
  #rates: readonly number[] = [];

  observe(reading: ClockReading): void {
    const best = this.#best;
    const isOld = best === undefined || reading.receivedMs - best.receivedMs > READING_AGE_MS_MAX;
    if (isOld || best.leader !== reading.leader || roundTripMs(reading) <= roundTripMs(best)) this.#best = reading;
    this.#observeRate(reading);
  }

  /** Undefined while the clocks are close enough, or nothing is known. */
  get difference(): ClockDifference | undefined {
    const best = this.#best;
    if (best === undefined) return undefined;
    const aheadMs = beyond(
      best.wallMs - roundTripMs(best) / 2 - best.leaderWallMs,
      roundTripMs(best) / 2,
      AHEAD_MS_MAX,
    );
    const [first = 0, second = 0] = this.#rates;
    const fasterPercent = Math.sign(first) === Math.sign(second) ? second : 0; // CC2
    return aheadMs === 0 && fasterPercent === 0 ? undefined : { leader: best.leader, aheadMs, fasterPercent };
  }

  #observeRate(reading: ClockReading): void {
    const from = this.#from;
    if (from === undefined || from.leader !== reading.leader) return this.#restart(reading);
    const spanMs = reading.leaderMonotonicMs - from.leaderMonotonicMs;
    const ownMs = middleMs(reading) - middleMs(from);
    const fasterPercent = (100 * (ownMs - spanMs)) / ownMs;
    const errorPercent = (50 * (roundTripMs(reading) + roundTripMs(from))) / ownMs;
    if (Math.abs(fasterPercent) > RESTARTED_PERCENT + errorPercent) return this.#restart(reading);
    if (ownMs < SPAN_MS) return;
    this.#rates = [this.#rates.at(-1) ?? 0, beyond(fasterPercent, errorPercent, FASTER_PERCENT_MAX)];
    this.#from = reading;
  }

  #restart(reading: ClockReading): void {
    this.#from = reading;
    this.#rates = [];
  }
}

/** The difference, or 0 if it may be within the limit. */
function beyond(difference: number, error: number, limit: number): number {
  return Math.abs(difference) - error > limit ? difference : 0;
}

function roundTripMs({ sentMs, receivedMs }: ClockReading): number {
  return receivedMs - sentMs;
}

function middleMs({ sentMs, receivedMs }: ClockReading): number {
  return (sentMs + receivedMs) / 2;
}
