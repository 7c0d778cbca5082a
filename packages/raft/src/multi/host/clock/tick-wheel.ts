/**
 * Which groups have something to do at which tick: of thousands of idle ones, a tick touches only those that are due.
 *
 * W1. A group stands at one tick, its place; what it left behind at other ticks is passed over.
 * W2. A group stands no later than its core's `dueTick`. It may stand earlier: then it is asked, does nothing, and is
 *     given a new place. Places further ahead than the wheel's size are taken step by step in the same way.
 */

/** A group, as the wheel sees it. */
export interface TickMember {
  /** Managed by the wheel: where it stands; `NOWHERE` when it does not. */
  place: number;
  /** The next tick at which it may have something to do. */
  readonly dueTick: number;
  /** That tick has come. */
  elapsed(): void;
}

export const NOWHERE = Number.POSITIVE_INFINITY;
const SIZE = 64;

export class TickWheel {
  readonly #slots: TickMember[][] = Array.from({ length: SIZE }, () => []);
  #tick = 0;

  /** Gives a group its place, if it has none that is early enough (W2). */
  schedule(member: TickMember): void {
    const place = Math.min(Math.max(member.dueTick, this.#tick + 1), this.#tick + SIZE - 1);
    if (place >= member.place) return;
    member.place = place;
    this.#slots[place % SIZE]?.push(member);
  }

  /** Tick `tick`, the next one, has come: groups that are due do what they have to do. */
  advance(tick: number): void {
    this.#tick = tick;
    const slot = this.#slots[tick % SIZE] ?? [];
    const members = slot.splice(0);
    for (const member of members) {
      if (member.place !== tick) continue; // W1
      member.place = NOWHERE;
      member.elapsed();
      this.schedule(member);
    }
  }

  remove(member: TickMember): void {
    member.place = NOWHERE;
  }
}
