import type { Clock } from '@remora/base';
import { Sweep } from './sweep.ts';

/**
 * A peer that is silent for this long is asked for a sign of life, and given up when none comes within the same time
 * again. A process that is stopped, or a machine that is gone without a word, keeps its connections: only silence
 * tells. Long enough for a loop that is held up by garbage collection or a slow disk.
 */
const SILENCE_MS = 1_500;
/** The same for what may be asked of somebody else as well: to give the peer up is cheap then. */
const MUTE_MS = 150;
const CHECK_MS = 50;
/** A check that comes this long after the one before tells of this process, which stood still, not of the peer. */
const CHECK_LATE_MS = 3 * CHECK_MS;

export interface SilenceDeps {
  readonly clock: Clock;
  /** Whether anything is awaited of the peer. */
  readonly awaiting: () => boolean;
  /** Whether some of it may be asked of somebody else. */
  readonly awaitingMovable: () => boolean;
  readonly isOpen: () => boolean;
  /** Asks for a sign of life. */
  readonly ask: (timeoutMs: number) => void;
  /** It gave none for a moment. */
  readonly onMute: () => void;
  /** It gave none for long. */
  readonly onGone: () => void;
}

/**
 * How long nothing was heard of a peer of which something is awaited (caller.ts C4, C5). Silence is counted in checks
 * that came on time, so that time in which this process could not listen does not count.
 */
export class Silence {
  readonly #deps: SilenceDeps;
  readonly #sweep: Sweep;
  #silentMs = 0;
  /** How long it had been silent when it was asked for what is movable. */
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

  /** Something is awaited from now on. After a pause without that, silence counts from now. */
  watch(): void {
    if (this.#sweep.armed) return;
    this.heard();
    this.#checkedMs = this.#deps.clock.monotonicMs();
    this.#sweep.arm();
  }

  /** An answer is heard like anything else; a link that is not open yet has a time-out of its own. */
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
