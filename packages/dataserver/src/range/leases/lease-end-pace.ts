import { LazyMap, ServiceError } from '@remora/base';

/** Handlers for the ends of leases, or of parts of their attachments. */
interface EndHandlers<End> {
  /** Keys and locks that an end takes, as far as is known before it is proposed. */
  readonly rows: (end: End) => number;
  /** Proposes an end. `over` is called once when the end is decided, or waits for something else. */
  readonly go: (end: End) => void;
  readonly refuse: (end: End, error: ServiceError) => void;
}

/** The largest number of keys and locks that are being taken, without those of the last end that was started. */
const ROWS_MAX = 500;
/** Ends that wait; more are refused. */
const WAITING_MAX = 20_000;

/**
 * Paces the ends of many leases that end at the same time, for example when a network fails. Each end takes up to
 * 250 keys and locks in its entry (LC1, LC2 of lease-commands.ts). Everything proposed in one turn, or while other
 * entries are replicated, is applied together, and every caller waits for that on every replica.
 *
 * EP1. Ends go in the order in which they came, as soon as those that are proposed and not decided take less than
 *      ROWS_MAX. So at least one end is always in progress, and every end is decided or refused eventually.
 */
export class LeaseEndPace<End> {
  readonly #handlers: EndHandlers<End>;
  #waiting: End[] = [];
  /** Index into `#waiting`: the ends before it were started. */
  #gone = 0;
  /** The rows of each end in progress, and their sum. */
  readonly #underWay = new LazyMap<End, number>();
  #rows = 0;
  #going = false;

  constructor(handlers: EndHandlers<End>) {
    this.#handlers = handlers;
  }

  /** Ends that wait. */
  get waiting(): number {
    return this.#waiting.length - this.#gone;
  }

  add(end: End): void {
    if (this.waiting >= WAITING_MAX) return this.#handlers.refuse(end, tooMany());
    this.#waiting.push(end);
    this.#go();
  }

  /** An end is decided, or waits for something else. Does nothing for an end that is not in progress. */
  over(end: End): void {
    const rows = this.#underWay.get(end);
    if (rows === undefined) return;
    this.#underWay.delete(end);
    this.#rows -= rows;
    this.#go();
  }

  /** An end that is over at once only makes room in the loop that started it: there is no recursion. */
  #go(): void {
    if (this.#going) return;
    this.#going = true;
    while (this.#rows < ROWS_MAX) {
      const next = this.#waiting[this.#gone];
      if (next === undefined) break;
      this.#gone++;
      const rows = Math.max(1, this.#handlers.rows(next));
      this.#underWay.set(next, rows);
      this.#rows += rows;
      this.#handlers.go(next);
    }
    this.#going = false;
    if (this.#gone * 2 < this.#waiting.length) return;
    this.#waiting = this.#waiting.slice(this.#gone);
    this.#gone = 0;
  }
}

function tooMany(): ServiceError {
  return new ServiceError('RESOURCE_EXHAUSTED', 'too many leases end at the same time; try again later');
}
