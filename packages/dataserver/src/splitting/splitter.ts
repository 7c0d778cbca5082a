import { type Bytes, type Clock, type Engine, type Logger, ServiceError, toServiceError } from '@remora/base';
import type { AskSplitReply, AskSplitRequest, Epoch, OrderResult, RangeDescriptor } from '@remora/protocol';
import type { SplitResult } from '../range/reshape/splits.ts';
import type { ServedReplica } from '../range/served-replica.ts';
import { sampleSize } from '../range/stats/size-sampler.ts';
import { Pauses } from './pauses.ts';
import type { SplitPlace, SplitWish } from './split-wish.ts';

/** The part of a replica that the splitter needs. */
export type SplitReplica = Pick<ServedReplica, 'rangeId' | 'serving' | 'split'> & {
  readonly group: Pick<ServedReplica['group'], 'term'>;
  readonly state: Pick<ServedReplica['state'], 'descriptor' | 'bounds' | 'placeRefusal'>;
  readonly splitReasons: Pick<ServedReplica['splitReasons'], 'wish' | 'refused'>;
};

export interface SplitterDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly engine: Engine;
  readonly replica: (rangeId: number) => SplitReplica | undefined;
  /** The replicas that may have a reason to be split: all that have one are among them. */
  readonly candidates: () => Iterable<SplitReplica>;
  /** Asks the master, which may refuse. For the same epoch the master answers with the same ids. */
  readonly askIds: (request: AskSplitRequest) => Promise<AskSplitReply>;
  /** Shortens the checkpoints behind the split on all nodes of the range, by writing one before it; never fails. */
  readonly prepare: (range: RangeDescriptor) => Promise<void>;
}

/** A split that an operator ordered through the master. */
interface Ordered {
  /** Undefined: split in the middle. */
  readonly at: Bytes | undefined;
  /** The range's version when the split was ordered. */
  readonly version: number;
  outcome: OrderedSplit;
  /** When the order was last received, or when it ended. */
  lastMs: number;
}

export type OrderedSplit = Omit<OrderResult, 'orderId'>;

/** The next split to carry out. */
interface Next {
  readonly replica: SplitReplica;
  readonly wish: SplitWish;
  /** The order that asked for this split, if any. */
  readonly order?: Ordered;
}

const DONE: OrderedSplit = { outcome: 'done', reason: '' };
const UNDER_WAY: OrderedSplit = { outcome: 'underWay', reason: 'the range is being split' };

/**
 * The master repeats an order until it knows that the order was carried out. An order that arrives within this time
 * after the end was sent before the master knew. An order that did not arrive for this time is no longer wanted.
 */
const TOLD_AGAIN_MS = 5_000;

/** The range was changed, or another replica leads it. */
const GONE = 'the range has changed, or another replica leads it';

/**
 * Splits of the ranges that are led here, from the reason for a split to its end.
 *
 * SL1. A node carries out one split at a time. Each begins and ends with a checkpoint, and none is urgent: ranges stay
 *      served.
 * SL2. A wish, an order or a measurement is valid only in the term and the epoch in which it was made. In any other the
 *      split is given up, so that no proposal describes an outdated range. Apply would refuse it (splits.ts,
 *      state/reshape/split.ts).
 * SL3. Before a split is proposed, its nodes write what waits in memory. The keys that leave are not served until the
 *      checkpoint behind the split is durable (splits.ts S2), so that checkpoint should have little left to write. The
 *      nodes write in turn.
 * SL4. After a failed split the range waits before the next attempt, longer each time.
 * SL5. An order goes first. If it fails, the next order is answered with the reason, and the one after that begins
 *      again. A failure that may pass by itself is reported as in progress, so that the master goes on until its time
 *      limit; other failures are refusals. If another order takes the place of an order that is being carried out, the
 *      result of the first is not reported for the second.
 * SL6. An order is begun only while it is wanted. It is not begun in the middle of a range that was split meanwhile,
 *      nor after the master has stopped repeating it because it was cancelled or timed out while other splits were in
 *      turn.
 */
export class Splitter {
  readonly #deps: SplitterDeps;
  readonly #pauses: Pauses;
  readonly #ordered = new Map<number, Ordered>();
  #running = false;
  #stopped = false;

  constructor(deps: SplitterDeps) {
    this.#deps = deps;
    this.#pauses = new Pauses(deps.clock);
  }

  /** Looks for a range to split. Calling it often is cheap. */
  tick(): void {
    if (this.#running || this.#stopped) return;
    const next = this.#next();
    if (next === undefined) return;
    this.#running = true;
    void this.#split(next).finally(() => {
      this.#running = false;
      this.tick();
    });
  }

  /**
   * Takes the master's order to split a range at a key or in the middle. A repeated order returns the state of the
   * first. The order is done when the range begins or ends at the key.
   */
  order(replica: SplitReplica, at: Bytes | undefined): OrderedSplit {
    const { rangeId, state } = replica;
    const { start, end } = state.descriptor;
    if (at !== undefined && [start, end].some((border) => border.length > 0 && isSame(border, at))) return DONE;
    const known = this.#ordered.get(rangeId);
    if (known !== undefined && isSame(known.at, at) && this.#isCurrent(known)) {
      if (known.outcome !== UNDER_WAY && known.outcome !== DONE) this.#ordered.delete(rangeId);
      if (known.outcome === UNDER_WAY) known.lastMs = this.#deps.clock.monotonicMs();
      return known.outcome;
    }
    const refused = at === undefined ? undefined : state.placeRefusal(at);
    if (refused !== undefined) return { outcome: 'refused', reason: refused.message };
    const { version } = state.descriptor.epoch;
    this.#ordered.set(rangeId, { at, version, outcome: UNDER_WAY, lastMs: this.#deps.clock.monotonicMs() });
    this.tick();
    return UNDER_WAY;
  }

  #isCurrent({ outcome, lastMs }: Ordered): boolean {
    return outcome === UNDER_WAY || this.#deps.clock.monotonicMs() - lastMs < TOLD_AGAIN_MS;
  }

  /** SL6. Returns whether the order still needs a split. If not, it marks the order as done, or forgets it. */
  #keepOrDrop(order: Ordered, { rangeId, state }: SplitReplica): boolean {
    const nowMs = this.#deps.clock.monotonicMs();
    if (order.at === undefined && state.descriptor.epoch.version !== order.version) {
      order.outcome = DONE;
      order.lastMs = nowMs;
    } else if (nowMs - order.lastMs < TOLD_AGAIN_MS) return true;
    else this.#ordered.delete(rangeId);
    return false;
  }

  stop(): void {
    this.#stopped = true;
  }

  #next(): Next | undefined {
    this.#pauses.keepOnly({ has: (rangeId) => this.#deps.replica(rangeId)?.serving === true });
    for (const [rangeId, order] of this.#ordered) {
      const { at, outcome } = order;
      const replica = this.#deps.replica(rangeId);
      if (replica?.serving !== true) this.#ordered.delete(rangeId);
      else if (outcome === UNDER_WAY && this.#keepOrDrop(order, replica)) {
        return { replica, wish: { cause: 'admin', ...(at === undefined ? {} : { at }) }, order };
      }
    }
    for (const replica of this.#deps.candidates()) {
      const wish = replica.serving ? replica.splitReasons.wish : undefined;
      if (wish !== undefined && !this.#pauses.paused(replica.rangeId)) return { replica, wish };
    }
    return undefined;
  }

  async #split(next: Next): Promise<void> {
    const { replica, wish } = next;
    const { rangeId } = replica;
    const { logger } = this.#deps;
    const { cause } = wish;
    try {
      const { left, right } = await this.#carryOut(replica, wish);
      logger.info({ range: left.rangeId, child: right.rangeId, cause }, 'split a range');
      this.#ended(next, DONE);
    } catch (error) {
      const { message, retry } = toServiceError(error);
      logger.info({ range: rangeId, cause, error: message }, 'a range was not split');
      if (cause !== 'admin') replica.splitReasons.refused(message);
      this.#ended(next, {
        outcome: retry === 'no' ? 'refused' : 'underWay',
        reason: retry === 'no' ? message : `the last attempt failed, and is repeated: ${message}`,
      });
    }
  }

  /** SL4, SL5. */
  #ended({ replica: { rangeId }, order }: Next, outcome: OrderedSplit): void {
    if (order !== undefined) {
      order.outcome = outcome;
      order.lastMs = this.#deps.clock.monotonicMs();
    } else if (outcome === DONE) this.#pauses.succeeded(rangeId);
    else this.#pauses.failed(rangeId);
  }

  async #carryOut(replica: SplitReplica, wish: SplitWish): Promise<SplitResult> {
    const { askIds, prepare } = this.#deps;
    const life = lifeOf(replica);
    const check = (): void => {
      if (this.#stopped || !isAlive(replica, life)) throw new ServiceError('UNAVAILABLE', GONE); // SL2
    };
    const range = replica.state.descriptor;
    const { at, live } = await this.#place(replica, wish, () => !isAlive(replica, life));
    check();
    const refused = replica.state.placeRefusal(at);
    if (refused !== undefined) throw refused;
    const { childId, replicas } = await askIds({ range, at, cause: wish.cause });
    check();
    await prepare(range); // SL3
    check();
    const command = { type: 'split', at, epoch: range.epoch, childId, replicas, ...live } as const;
    return new Promise((resolve, reject) => {
      replica.split(command, (error, result) => {
        if (result === undefined) reject(error);
        else resolve(result);
      });
    });
  }

  /** Returns where to cut, and what lies behind the cut: from the wish, or measured now. */
  async #place(replica: SplitReplica, { at, live }: SplitWish, stopped: () => boolean): Promise<SplitPlace> {
    if (at !== undefined && live !== undefined) return { at, live };
    const { engine, clock } = this.#deps;
    const { bounds } = replica.state;
    const span = at === undefined ? bounds : { start: at, end: bounds.end };
    const measured = await sampleSize(engine, span, { clock, stopped });
    if (measured === undefined) throw new ServiceError('UNAVAILABLE', GONE);
    const place = at === undefined ? measured.middle : { at, live: measured.live };
    if (place !== undefined) return place;
    const message = `range ${replica.rangeId} has no middle: it holds nothing, or one key, lock or lease`;
    throw new ServiceError('INVALID_ARGUMENT', message);
  }
}

interface Life {
  readonly term: number;
  readonly epoch: Epoch;
}

function lifeOf({ group, state }: SplitReplica): Life {
  return { term: group.term, epoch: state.descriptor.epoch };
}

/** SL2. */
function isAlive(replica: SplitReplica, { term, epoch }: Life): boolean {
  const now = lifeOf(replica);
  const { version, confVersion } = now.epoch;
  return replica.serving && now.term === term && version === epoch.version && confVersion === epoch.confVersion;
}

function isSame(a: Bytes | undefined, b: Bytes | undefined): boolean {
  return a === undefined || b === undefined ? a === b : Buffer.from(a).equals(b);
}
