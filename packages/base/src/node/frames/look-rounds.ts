/**
 * One timer for the looks of many streams (frame-stream.ts FS3). A node has several quiet connections to each other
 * node; with a timer for each, an idle process would spend much of its time on waking up.
 *
 * LR1. A member is called once per round, first after at least half an interval and at most one and a half. It stays
 *      until it leaves.
 * LR2. A round has at most `MEMBERS_MAX` members, so that a round of thousands of clients does not hold up other work.
 *      Further members get a round of their own, at another time.
 */
import type { Clock, Timer } from '../../clock.ts';

const MEMBERS_MAX = 64;

type Look = () => void;

const roundsOf = new WeakMap<Clock, Map<number, Set<Round>>>();

/** `look` is called every `everyMs` milliseconds until the returned function is called. */
export function joinRound(clock: Clock, everyMs: number, look: Look): () => void {
  const byInterval = roundsOf.get(clock) ?? new Map<number, Set<Round>>();
  roundsOf.set(clock, byInterval);
  const rounds = byInterval.get(everyMs) ?? new Set<Round>();
  byInterval.set(everyMs, rounds);
  let round: Round | undefined;
  for (const each of rounds) {
    if (each.size >= MEMBERS_MAX) continue; // LR2
    round = each;
    break;
  }
  if (round === undefined) {
    round = new Round(clock, everyMs);
    rounds.add(round);
  }
  const joined = round;
  joined.join(look);
  return () => {
    joined.leave(look);
    if (joined.size === 0) rounds.delete(joined);
  };
}

class Round {
  readonly #clock: Clock;
  readonly #everyMs: number;
  /** From which round on each member is called (LR1). */
  readonly #members = new Map<Look, number>();
  #round = 0;
  #nextMs = 0;
  #timer: Timer | undefined;

  constructor(clock: Clock, everyMs: number) {
    this.#clock = clock;
    this.#everyMs = everyMs;
  }

  get size(): number {
    return this.#members.size;
  }

  join(look: Look): void {
    if (this.#timer === undefined) this.#arm();
    const isSoon = this.#nextMs - this.#clock.monotonicMs() < this.#everyMs / 2;
    this.#members.set(look, this.#round + (isSoon ? 1 : 0));
  }

  leave(look: Look): void {
    this.#members.delete(look);
    if (this.#members.size > 0) return;
    this.#timer?.cancel();
    this.#timer = undefined;
  }

  #arm(): void {
    this.#nextMs = this.#clock.monotonicMs() + this.#everyMs;
    this.#timer = this.#clock.setTimer(this.#everyMs, () => {
      const round = this.#round++;
      this.#arm();
      for (const [look, from] of this.#members) if (from <= round) look();
    });
  }
}
