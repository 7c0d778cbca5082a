import { type Clock, type Logger, type Random, ServiceError } from '@remora/base';
import {
  type Done,
  DRAW_COUNT_MAX,
  DRAWS_MAX,
  type DrawRevisionsReply,
  type DrawRevisionsRequest,
  type RevisionBlock,
  type RevisionDraw,
} from '@remora/protocol';

/** Draws revisions for one range: says how many it needs when a request is sent, and receives the result. */
export interface Drawing {
  readonly rangeId: number;
  /**
   * A request is being sent. Returns the highest revision in use here, and how many are needed; undefined: no more are
   * needed.
   */
  sending(): { readonly floor: number; readonly count: number } | undefined;
  answered(block: RevisionBlock): void;
  /** There will be no answer. The next request asks again. */
  failed(): void;
}

/** The source of a node's revisions, which the master allocates. */
export interface RevisionSource {
  /** Requests revisions for it soon. Calling this often is cheap. */
  want(drawing: Drawing): void;
  /**
   * Asks once for a revision, at least `floor`. Revisions allocated after the answer are above it; those allocated
   * before the question are at or below it.
   */
  newest(floor: number, done: NewestDone): void;
  /** Asks once for a revision above `floor` that is used for nothing else. */
  one(floor: number, done: NewestDone): void;
}

export interface RevisionDrawerDeps {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** Makes one attempt at the master that is believed to lead. `done` is called once, in bounded time. */
  readonly call: (request: DrawRevisionsRequest, done: Done<DrawRevisionsReply>) => void;
}

/** By range: the drawings of a sent request, and the number that each asked for. */
type Drawings = Map<number, { readonly drawing: Drawing; readonly count: number }>;

interface Asking {
  readonly floor: number;
  readonly done: NewestDone;
}

export type NewestDone = (error: ServiceError | undefined, newest: number | undefined) => void;

/** The range id of a draw that is for no range. */
const NO_RANGE = 0;
/** The maximum in one request; it leaves room for a draw that is for no range. */
const RANGE_DRAWS_MAX = DRAWS_MAX - 1;
const RETRY_MIN_MS = 5;
/** Short compared with an election of the masters: it extends the time in which no client can write. */
const RETRY_MAX_MS = 10;
/** The interval of log messages while the master answers nothing. */
const SILENCE_LOG_MS = 10_000;

/**
 * Draws revisions from the master for all ranges of a node (design §8).
 *
 * D1. One request is in progress at a time; further needs go into the next. So the master's work is per node and round
 *     trip, not per range and write.
 * D2. A drawing states its need when the request is sent, and gets only what that request brought: the answer to an
 *     abandoned request is ignored (`call` reports once).
 * D3. A drawing is kept once, however often it asks; memory is bounded by the ranges of the node.
 * D4. A caller that asks for one revision gets it from the next request, or an error: nothing is kept for it.
 */
export class RevisionDrawer implements RevisionSource {
  readonly #deps: RevisionDrawerDeps;
  /** The drawings of the next request. */
  #wanting = new Set<Drawing>();
  #asking: Asking[] = [];
  /** D4. */
  #singles: Asking[] = [];
  #busy = false;
  #scheduled = false;
  #failures = 0;
  #saidMs = 0;
  #stopped = false;

  constructor(deps: RevisionDrawerDeps) {
    this.#deps = deps;
  }

  want(drawing: Drawing): void {
    this.#wanting.add(drawing);
    this.#schedule();
  }

  newest(floor: number, done: NewestDone): void {
    this.#ask(this.#asking, { floor, done });
  }

  /** D4. */
  one(floor: number, done: NewestDone): void {
    this.#ask(this.#singles, { floor, done });
  }

  #ask(queue: Asking[], asking: Asking): void {
    if (this.#stopped) return asking.done(stopping(), undefined);
    queue.push(asking);
    this.#schedule();
  }

  stop(): void {
    this.#stopped = true;
    this.#wanting.clear();
    const asking = [...this.#asking, ...this.#singles];
    this.#asking = [];
    this.#singles = [];
    for (const { done } of asking) done(stopping(), undefined);
  }

  #schedule(): void {
    if (this.#busy || this.#scheduled || this.#stopped) return;
    this.#scheduled = true;
    this.#deps.clock.setImmediate(() => {
      this.#scheduled = false;
      this.#send();
    });
  }

  #send(): void {
    if (this.#stopped) return;
    const { request, drawings } = this.#gather();
    const asking = this.#asking;
    this.#asking = [];
    const singles = this.#singles.splice(0, DRAW_COUNT_MAX);
    const draws = singles.length === 0 ? [] : [{ rangeId: NO_RANGE, count: singles.length }];
    draws.push(...request.draws);
    const floor = [...asking, ...singles].reduce((highest, ask) => Math.max(highest, ask.floor), request.floor);
    if (draws.length === 0 && asking.length === 0) return;
    this.#busy = true;
    this.#deps.call({ floor, draws }, (error, reply) => {
      for (const { done } of asking) done(error, reply?.newest);
      tellSingles(singles, error, reply);
      if (reply === undefined) this.#failed(drawings, error);
      else this.#answered(drawings, reply);
    });
  }

  /** D2. What is wanted from now on goes into the next request, also for the drawings that are asked here. */
  #gather(): { readonly request: DrawRevisionsRequest; readonly drawings: Drawings } {
    const wanting = this.#wanting;
    this.#wanting = new Set();
    const drawings: Drawings = new Map();
    const draws: RevisionDraw[] = [];
    let floor = 0;
    for (const drawing of wanting) {
      const needed = draws.length < RANGE_DRAWS_MAX ? drawing.sending() : undefined;
      if (needed !== undefined) {
        drawings.set(drawing.rangeId, { drawing, count: needed.count });
        draws.push({ rangeId: drawing.rangeId, count: needed.count });
        floor = Math.max(floor, needed.floor);
      } else if (draws.length >= RANGE_DRAWS_MAX) this.#wanting.add(drawing);
    }
    return { request: { floor, draws }, drawings };
  }

  #answered(drawings: Drawings, { blocks }: DrawRevisionsReply): void {
    this.#busy = false;
    this.#failures = 0;
    for (const { rangeId, first, count } of blocks) {
      const asked = drawings.get(rangeId);
      if (asked?.count !== count) continue;
      drawings.delete(rangeId);
      asked.drawing.answered({ first, count });
    }
    this.#again(drawings);
    if (this.#wanting.size + this.#asking.length + this.#singles.length > 0) this.#schedule();
  }

  #failed(drawings: Drawings, error: ServiceError | undefined): void {
    this.#again(drawings);
    this.#say(error);
    const ceiling = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** Math.min(this.#failures++, 5));
    const delayMs = ceiling / 2 + this.#deps.random.int(Math.ceil(ceiling / 2));
    this.#deps.clock.setTimer(delayMs, () => {
      this.#busy = false;
      this.#send();
    });
  }

  #again(drawings: Drawings): void {
    for (const { drawing } of drawings.values()) {
      this.#wanting.add(drawing);
      drawing.failed();
    }
  }

  #say(error: ServiceError | undefined): void {
    const { clock, logger } = this.#deps;
    const nowMs = clock.monotonicMs();
    if (this.#failures === 0) this.#saidMs = nowMs;
    if (nowMs - this.#saidMs < SILENCE_LOG_MS) return;
    this.#saidMs = nowMs;
    logger.warn({ error: error?.message }, 'the master gives out no revisions: writes wait; trying on');
  }
}

function stopping(): ServiceError {
  return new ServiceError('UNAVAILABLE', 'this node is stopping');
}

/** D4. */
function tellSingles(
  singles: readonly Asking[],
  error: ServiceError | undefined,
  reply: DrawRevisionsReply | undefined,
): void {
  const block = reply?.blocks.find(({ rangeId }) => rangeId === NO_RANGE);
  const refused = error ?? new ServiceError('UNAVAILABLE', 'the master gave no revision');
  for (const [i, { done }] of singles.entries()) {
    if (block !== undefined && i < block.count) done(undefined, block.first + i);
    else done(refused, undefined);
  }
}
