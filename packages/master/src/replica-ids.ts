import type { ServiceError } from '@remora/base';

/** Ids that are drawn from the log at a time: what is at hand when the leader changes is lost, and there are plenty. */
const DRAWN_AT_A_TIME = 16;
/** With fewer at hand more are drawn. */
const LOW = 8;

/** Draws ids that are given to nobody else; answers with the first of them. */
export type DrawIds = (
  count: number,
  done: (error: ServiceError | undefined, first: number | undefined) => void,
) => void;

/**
 * Ids for new replicas, at hand of the master that leads, so that whoever decides need not wait for the log.
 *
 * RI1. An id is handed out once: it was drawn by this leader, in this term, and leaves here for good (state.ts M1).
 */
export class ReplicaIds {
  readonly #draw: DrawIds;
  #free: number[] = [];
  #drawing = false;
  #term = 0;

  constructor(draw: DrawIds) {
    this.#draw = draw;
  }

  /** Undefined while none is at hand: one will be soon, if this master leads. */
  next(): number | undefined {
    const id = this.#free.shift();
    if (this.#free.length < LOW && !this.#drawing) this.#fill();
    return id;
  }

  /** What was drawn before belongs to another term. */
  termBegan(term: number): void {
    this.#term = term;
    this.#free = [];
    this.#drawing = false;
  }

  #fill(): void {
    const term = this.#term;
    this.#drawing = true;
    this.#draw(DRAWN_AT_A_TIME, (_error, first) => {
      if (term !== this.#term) return; // RI1
      this.#drawing = false;
      if (first !== undefined) for (let i = 0; i < DRAWN_AT_A_TIME; i++) this.#free.push(first + i);
    });
  }
}
