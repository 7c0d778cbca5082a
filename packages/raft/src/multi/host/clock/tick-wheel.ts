/**
 * Schedules groups by the tick at which they have something to do: a tick touches only the groups that are due, of
 * thousands of idle ones.
 *
 * W1. A group has one current tick, its place; its old entries at other ticks are ignored.
 * W2. The place of a group is not later than its core's `dueTick`. It may be earlier, because heartbeats postpone what
 *     a follower has to do: then the group does nothing and gets a new place. Places further ahead than the size of the
 *     wheel are reached in several such steps.
 * W3. A node does not wake for a tick at which all groups were postponed, as long as there are few of them.
 */

/** A group, as the wheel sees it. */
export interface TickMember {
  /** Managed by the wheel: its tick; `NOWHERE` if it has none. */
  place: number;
  /** The next tick at which it may have something to do. */
  readonly dueTick: number;
  /** The tick has come. */
  elapsed(): void;
}

export const NOWHERE = Number.POSITIVE_INFINITY;
const SIZE = 64;
/** W3. */
const EXAMINED_MAX = 16;
/** The furthest tick that `ticksToNext` can look ahead to. */
export const WHEEL_TICKS_MAX = SIZE - 1;

export class TickWheel {
  readonly #slots: TickMember[][] = Array.from({ length: SIZE }, () => []);
  #tick = 0;

  /** Gives a group its place, if it has none that is early enough (W2). Returns after how many ticks it is due. */
  schedule(member: TickMember): number {
    const place = Math.min(Math.max(member.dueTick, this.#tick + 1), this.#tick + SIZE - 1);
    if (place < member.place) {
      member.place = place;
      this.#slots[place % SIZE]?.push(member);
    }
    return member.place - this.#tick;
  }

  /** Returns after how many ticks some group may be due; `most` if none is before that. */
  ticksToNext(most: number): number {
    for (let ticks = 1; ticks < most; ticks++) if (this.#isDue(this.#tick + ticks)) return ticks;
    return most;
  }

  /** W3. */
  #isDue(tick: number): boolean {
    const slot = this.#slots[tick % SIZE] ?? [];
    if (slot.length > EXAMINED_MAX) return true;
    for (const member of slot.splice(0)) {
      if (member.place !== tick) continue; // W1
      if (member.dueTick <= tick) slot.push(member);
      else this.#postpone(member);
    }
    return slot.length > 0;
  }

  #postpone(member: TickMember): void {
    member.place = NOWHERE;
    this.schedule(member);
  }

  /** The next tick, `tick`, has come: calls the groups that are due. */
  advance(tick: number): void {
    this.#tick = tick;
    const slot = this.#slots[tick % SIZE] ?? [];
    const members = slot.splice(0);
    for (const member of members) {
      if (member.place !== tick) continue; // W1
      if (member.dueTick <= tick) {
        member.place = NOWHERE;
        member.elapsed();
        this.schedule(member);
      } else this.#postpone(member);
    }
  }

  remove(member: TickMember): void {
    member.place = NOWHERE;
  }
}
