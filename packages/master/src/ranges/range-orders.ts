import type { Logger } from '@remora/base';
import type { OrderResult, RangeDescriptor, RangeInstruction, RangeOrder, RangeReport } from '@remora/protocol';

/** A leader's report about its range, with the descriptor that it is based on. */
export interface ReportedRange {
  readonly descriptor: RangeDescriptor;
  readonly report: RangeReport;
}

/** Decides what the leaders of ranges do. */
export interface RangeDirector {
  /**
   * Called with each report of a leader whose membership the master knows; the instruction is returned to the leader at
   * once.
   */
  reported(range: ReportedRange): RangeInstruction | undefined;
  /** The result of the last instruction to a range. */
  ended(rangeId: number, instruction: RangeInstruction, result: OrderResult): void;
}

/** The maximum number of orders in one term: ids of different terms differ. */
const ORDERS_PER_TERM_MAX = 1_000_000_000;

interface Given {
  readonly rangeId: number;
  readonly instruction: RangeInstruction;
}

/**
 * Delivers instructions to the leaders of ranges, in the answers to the heartbeats of their nodes.
 *
 * RO1. An instruction is decided from a report and sent in the answer to it, for the membership that the report shows.
 *      A leader whose range has changed since refuses it. So nothing must be remembered, and no instruction takes
 *      effect late.
 * RO2. Decisions use only reports of the membership that the master knows: a report that is behind or ahead is ignored.
 */
export class RangeOrders {
  readonly #logger: Logger;
  #director: RangeDirector | undefined;
  #nextId = 1;
  /** Unanswered orders by id; the last one of each range. */
  readonly #given = new Map<number, Given>();
  readonly #lastId = new Map<number, number>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  /** Sets the director from now on. Without one, ranges stay as they are. */
  directBy(director: RangeDirector): void {
    this.#director = director;
  }

  /** RO1, RO2. */
  reported(descriptor: RangeDescriptor, report: RangeReport): RangeOrder | undefined {
    const { confVersion, version } = descriptor.epoch;
    if (report.lead === undefined || report.epoch.confVersion !== confVersion || report.epoch.version !== version) {
      return undefined;
    }
    const instruction = this.#director?.reported({ descriptor, report });
    if (instruction === undefined) return undefined;
    const { rangeId } = descriptor;
    const orderId = this.#nextId++;
    this.#given.delete(this.#lastId.get(rangeId) ?? 0);
    this.#lastId.set(rangeId, orderId);
    this.#given.set(orderId, { rangeId, instruction });
    return { orderId, rangeId, confVersion, instruction };
  }

  ended(result: OrderResult): void {
    const given = this.#given.get(result.orderId);
    if (given === undefined) return; // the order came from an earlier leader of the masters, or was repeated since
    this.#given.delete(result.orderId);
    const { rangeId, instruction } = given;
    if (this.#lastId.get(rangeId) === result.orderId) this.#lastId.delete(rangeId);
    if (result.outcome === 'refused') {
      const { type } = instruction;
      this.#logger.info({ range: rangeId, instruction: type, reason: result.reason }, 'a range refused an instruction');
    }
    this.#director?.ended(rangeId, instruction, result);
  }

  /** A new term of the masters: the ids of orders from earlier terms, of any leader, are not known any more. */
  termBegan(term: number): void {
    this.#nextId = term * ORDERS_PER_TERM_MAX + 1;
    this.#given.clear();
    this.#lastId.clear();
  }
}
