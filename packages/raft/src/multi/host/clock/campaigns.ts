/**
 * Limits how many groups of a node campaign at a time. After a restart, or when a node with thousands of leaders dies,
 * all groups want to campaign at once. If more groups campaign than can be settled within an election timeout, they
 * only disrupt each other, and none is ever elected.
 *
 * C1. At most `most` campaigns run at a time. A campaign ends when its replica is neither candidate nor asking for
 *     pre-votes; an unsettled campaign gives up its place after `lastsTicks`.
 * C2. A refused replica asks again a heartbeat interval later, in the same order. It votes in the meantime.
 * C3. A leadership transfer does not wait: the campaign of its target needs no place.
 * C4. A replica that asks again because its last campaign was not settled may have lost its majority permanently,
 *     together with many others. Such replicas get at most half of the places; the rest is for replicas that ask for
 *     the first time.
 */
import type { Role } from '../../../core/types.ts';

/** A group, as its campaigns see it. */
export interface Campaigner {
  readonly role: Role;
}

export class Campaigns {
  readonly #most: number;
  readonly #mostAgain: number;
  readonly #lastsTicks: number;
  /** The campaigns in progress. */
  readonly #begun = new Map<Campaigner, { readonly tick: number; readonly again: boolean }>();
  /** The number of those that are not the first of their group (C4). */
  #again = 0;
  #sweptAt = -1;

  constructor(limits: { readonly most: number; readonly lastsTicks: number }) {
    this.#most = limits.most;
    this.#mostAgain = Math.ceil(limits.most / 2);
    this.#lastsTicks = limits.lastsTicks;
  }

  /** Whether `campaigner` may begin at `tick`. */
  admit(campaigner: Campaigner, tick: number): boolean {
    const again = campaigner.role !== 'follower';
    this.#end(campaigner); // the last campaign failed
    if (this.#isFull(again)) this.#sweep(tick);
    if (this.#isFull(again)) return false;
    this.#begun.set(campaigner, { tick, again });
    if (again) this.#again++;
    return true;
  }

  /** C1, C4. */
  #isFull(again: boolean): boolean {
    return this.#begun.size >= this.#most || (again && this.#again >= this.#mostAgain);
  }

  #end(campaigner: Campaigner): void {
    if (this.#begun.get(campaigner)?.again === true) this.#again--;
    this.#begun.delete(campaigner);
  }

  /** Runs at most once per tick: campaigns that ended since are noticed with the next. */
  #sweep(tick: number): void {
    if (this.#sweptAt === tick) return;
    this.#sweptAt = tick;
    for (const [campaigner, { tick: begun }] of this.#begun) {
      const over = campaigner.role === 'leader' || campaigner.role === 'follower';
      if (over || tick - begun >= this.#lastsTicks) this.#end(campaigner);
    }
  }
}
