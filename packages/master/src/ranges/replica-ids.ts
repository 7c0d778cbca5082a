import type { ServiceError } from '@remora/base';

/**
 * Ids that are drawn from the log at a time: the unused ones are lost when the leader changes, and there are plenty.
 */
const DRAWN_AT_A_TIME = 16;
/** Below this reserve more are drawn. */
const LOW = 8;

/** Draws ids that are never allocated otherwise; answers with the first of them. */
export type DrawIds = (
  count: number,
  done: (error: ServiceError | undefined, first: number | undefined) => void,
) => void;

/**
 * Ids for new replicas, in reserve on the master that leads, so that scheduling need not wait for the log.
 *
 * RI1. An id is handed out once: it was drawn by this leader in this term, and leaves the reserve for good
 *      (master-state.ts M1).
 * RI2. Ids are handed out in ascending order, across those for splits and for the first range: a node accepts no
 *      replica of a range after one with a higher id. So the reserve becomes void once higher ids were assigned
 *      otherwise.
 */
export class ReplicaIds {
  readonly #draw: DrawIds;
  /** The lowest id that was never allocated. */
  readonly #unused: () => number;
  #free: number[] = [];
  #drawing = false;
  #term = 0;

  constructor(draw: DrawIds, unused: () => number) {
    this.#draw = draw;
    this.#unused = unused;
  }

  /** Undefined while none is in reserve: one will be soon, if this master leads. */
  next(): number | undefined {
    if (this.#end !== this.#unused()) this.#free = []; // RI2
    const id = this.#free.shift();
    if (this.#free.length < LOW && !this.#drawing) this.#fill();
    return id;
  }

  /** Ids drawn before belong to another term. */
  termBegan(term: number): void {
    this.#term = term;
    this.#free = [];
    this.#drawing = false;
  }

  /** The id after the last one in reserve; 0 if there is none. */
  get #end(): number {
    const last = this.#free.at(-1);
    return last === undefined ? 0 : last + 1;
  }

  #fill(): void {
    const term = this.#term;
    this.#drawing = true;
    this.#draw(DRAWN_AT_A_TIME, (_error, first) => {
      if (term !== this.#term) return; // RI1
      this.#drawing = false;
      if (first === undefined) return;
      if (this.#end !== first) this.#free = []; // RI2
      for (let i = 0; i < DRAWN_AT_A_TIME; i++) this.#free.push(first + i);
    });
  }
}
