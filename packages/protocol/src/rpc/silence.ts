import type { Clock } from '@remora/base';
import { Sweep } from './sweep.ts';

/**
 * A peer that is silent for this long is asked for a sign of life, and given up if none comes within the same time
 * again. A stopped process, or a machine that failed silently, keeps its connections: only silence reveals it. Long
 * enough for a loop that is delayed by garbage collection or a slow disk.
 */
const SILENCE_MS = 1_500;
/** The same for calls that another node may answer as well: giving up the peer is cheap then. */
const MUTE_MS = 150;
const CHECK_MS = 50;
/** If a check comes this long after the previous one, this process stood still, not the peer. */
const CHECK_LATE_MS = 3 * CHECK_MS;

export interface SilenceDeps {
  readonly clock: Clock;
  /** Whether an answer of the peer is awaited. */
  readonly awaiting: () => boolean;
  /** Whether another node could answer some of the calls. */
  readonly awaitingMovable: () => boolean;
  readonly isOpen: () => boolean;
  /** Asks for a sign of life. */
  readonly ask: (timeoutMs: number) => void;
  /** The peer gave none for a short time. */
  readonly onMute: () => void;
  /** The peer gave none for a long time. */
  readonly onGone: () => void;
}

/**
 * Measures the silence of a peer while an answer is awaited (caller.ts C4, C5). Silence is counted in checks that came
 * on time, so time in which this process could not listen does not count.
 */
export class Silence {
  readonly #deps: SilenceDeps;
  readonly #sweep: Sweep;
  #silentMs = 0;
  /** The silence at which the peer was asked because of movable calls. */
  #askedAtMs: number | undefined;
  #checkedMs = 0;

  constructor(deps: SilenceDeps) {
    this.#deps = deps;
    this.#sweep = new Sweep(deps.clock, (nowMs) => this.#check(nowMs), CHECK_MS);
  }

  heard(): void {
    this.#silentMs = 0;
    this.#askedAtMs = undefined;
  }

  /** An answer is awaited from now on. After a time without that, silence counts from now. */
  watch(): void {
    if (this.#sweep.armed) return;
    this.heard();
    this.#checkedMs = this.#deps.clock.monotonicMs();
    this.#sweep.arm();
  }

  /** Any frame counts as a sign of life; a link that is not open yet has a time-out of its own. */
  #check(nowMs: number): boolean {
    const { awaiting, isOpen, ask, onGone } = this.#deps;
    if (!awaiting()) return false;
    const late = nowMs - this.#checkedMs > CHECK_LATE_MS;
    this.#checkedMs = nowMs;
    if (!isOpen() || late) return true;
    this.#silentMs += CHECK_MS;
    if (this.#silentMs >= 2 * SILENCE_MS) onGone();
    else if (this.#silentMs === SILENCE_MS) ask(SILENCE_MS);
    this.#checkMute();
    return true;
  }

  #checkMute(): void {
    const { awaitingMovable, ask, onMute } = this.#deps;
    if (this.#silentMs < MUTE_MS || !awaitingMovable()) return;
    if (this.#askedAtMs === undefined) {
      this.#askedAtMs = this.#silentMs;
      ask(SILENCE_MS);
    } else if (this.#silentMs - this.#askedAtMs >= MUTE_MS) onMute();
  }
}
