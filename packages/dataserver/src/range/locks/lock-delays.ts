import type { Clock, Timer } from '@remora/base';
import type { DelayedHold } from '@remora/lock';
import type { Command } from '@remora/protocol';
import type { DelayedHolds } from '../../state/locks/delayed-holds.ts';

interface Watched {
  readonly hold: DelayedHold;
  readonly deadlineMs: number;
  /** Its end was proposed, and is being decided. */
  ending: boolean;
}

/** Ends proposed and not decided at a time; more wait for the next sweep. */
const ENDING_MAX = 1_000;
/** How often deadlines are checked. */
const SWEEP_MS = 100;

/**
 * A leader's watch over the delays of locks whose holders' sessions have ended.
 *
 * LD1. A delay runs on this leader's monotonic clock from the moment when it applied the end of the session, or in full
 *      from when it began to lead: it is never shorter than requested, and a change of leader makes it longer.
 * LD2. Nothing ends here: the end is proposed, and names the hold. It needs no term: that the time has passed stays
 *      true whichever node leads when the command is applied, and a delayed hold never changes its state again.
 */
export class LockDelays {
  readonly #clock: Clock;
  readonly #holds: DelayedHolds;
  readonly #propose: (command: Command, done: (applied: boolean) => void) => void;
  #watched: Watched[] = [];
  #serving = false;
  /** Grows with each term: proposals of an earlier one are over. */
  #life = 0;
  #ending = 0;
  #timer: Timer | undefined;

  constructor(
    clock: Clock,
    holds: DelayedHolds,
    propose: (command: Command, done: (applied: boolean) => void) => void,
  ) {
    this.#clock = clock;
    this.#holds = holds;
    this.#propose = propose;
  }

  /** LD1. Called once this replica leads and has applied an entry of its own term. */
  start(): void {
    this.stop();
    this.#serving = true;
    for (const hold of this.#holds.all()) this.#watch(hold);
    this.#arm();
  }

  stop(): void {
    this.#serving = false;
    this.#life++;
    this.#ending = 0;
    this.#watched = [];
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  began(hold: DelayedHold): void {
    if (!this.#serving) return;
    this.#watch(hold);
    this.#arm();
  }

  #watch(hold: DelayedHold): void {
    this.#watched.push({ hold, deadlineMs: this.#clock.monotonicMs() + hold.delayMs, ending: false });
  }

  #arm(): void {
    if (this.#timer !== undefined || this.#watched.length === 0) return;
    this.#timer = this.#clock.setTimer(SWEEP_MS, () => {
      this.#timer = undefined;
      this.#sweep();
      this.#arm();
    });
  }

  #sweep(): void {
    const nowMs = this.#clock.monotonicMs();
    this.#watched = this.#watched.filter(({ hold }) => this.#holds.has(hold));
    for (const watched of this.#watched) {
      if (watched.ending || watched.deadlineMs > nowMs) continue;
      if (this.#ending >= ENDING_MAX) return;
      this.#end(watched);
    }
  }

  #end(watched: Watched): void {
    const { lock, owner, version } = watched.hold;
    const life = this.#life;
    watched.ending = true;
    this.#ending++;
    this.#propose({ type: 'lock', command: { type: 'endDelay', lock, owner, version } }, () => {
      if (life !== this.#life) return;
      this.#ending--;
      // An applied end is no longer in the state; any other is proposed again.
      watched.ending = false;
    });
  }
}
