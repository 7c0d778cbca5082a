/**
 * How many groups of a node campaign at a time. After a restart, or when a node with thousands of leaders dies, all
 * groups want to at once; more than can be settled within an election timeout would only overtake each other's
 * time-outs, and none would ever be elected.
 *
 * C1. At most `most` campaigns are under way. One is over when its replica is neither candidate nor asking for
 *     pre-votes; one that cannot be settled gives its place up after `lastsTicks`.
 * C2. Who is turned away asks again a heartbeat interval later, in the same order. It votes meanwhile.
 * C3. A leader that hands over is not kept waiting: its target's campaign is not asked about.
 */
import type { Role } from '../../../core/types.ts';

/** A group, as far as its campaign is concerned. */
export interface Campaigner {
  readonly role: Role;
}

export class Campaigns {
  readonly #most: number;
  readonly #lastsTicks: number;
  /** Campaigns under way, and the tick at which each began. */
  readonly #begun = new Map<Campaigner, number>();
  #sweptAt = -1;

  constructor(limits: { readonly most: number; readonly lastsTicks: number }) {
    this.#most = limits.most;
    this.#lastsTicks = limits.lastsTicks;
  }

  /** Whether `campaigner` may begin at `tick`. */
  admit(campaigner: Campaigner, tick: number): boolean {
    if (this.#begun.has(campaigner)) {
      this.#begun.set(campaigner, tick); // once more: the last time came to nothing
      return true;
    }
    if (this.#begun.size >= this.#most) this.#sweep(tick);
    if (this.#begun.size >= this.#most) return false;
    this.#begun.set(campaigner, tick);
    return true;
  }

  /** Once per tick at most: what ended since then is seen with the next. */
  #sweep(tick: number): void {
    if (this.#sweptAt === tick) return;
    this.#sweptAt = tick;
    for (const [campaigner, begun] of this.#begun) {
      const over = campaigner.role === 'leader' || campaigner.role === 'follower';
      if (over || tick - begun >= this.#lastsTicks) this.#begun.delete(campaigner);
    }
  }
}
