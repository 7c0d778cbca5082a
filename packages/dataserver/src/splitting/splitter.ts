import { type Bytes, type Clock, type Engine, type Logger, ServiceError, toServiceError } from '@remora/base';
import type { AskSplitReply, AskSplitRequest, Epoch, OrderResult, RangeDescriptor } from '@remora/protocol';
import type { SplitResult } from '../range/reshape/splits.ts';
import type { ServedReplica } from '../range/served-replica.ts';
import { sampleSize } from '../range/stats/size-sampler.ts';
import { Pauses } from './pauses.ts';
import type { SplitPlace, SplitWish } from './split-wish.ts';

/** What it needs to know of a replica. */
export type SplitReplica = Pick<ServedReplica, 'rangeId' | 'serving' | 'split'> & {
  readonly group: Pick<ServedReplica['group'], 'term'>;
  readonly state: Pick<ServedReplica['state'], 'descriptor' | 'bounds' | 'placeRefusal'>;
  readonly splitReasons: Pick<ServedReplica['splitReasons'], 'wish' | 'refused'>;
};

export interface SplitterDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly engine: Engine;
  readonly replicas: () => Iterable<SplitReplica>;
  /** Asks the master, which may refuse. Asked again for the same epoch it gives the same. */
  readonly askIds: (request: AskSplitRequest) => Promise<AskSplitReply>;
  /** Shortens the checkpoints behind the split, on all nodes of the range, by one before it; never fails. */
  readonly prepare: (range: RangeDescriptor) => Promise<void>;
}

/** A split that people asked for, by way of the master. */
interface Ordered {
  /** Undefined: in the middle. */
  readonly at: Bytes | undefined;
  /** Of the range, when it was asked for. */
  readonly version: number;
  outcome: OrderedSplit;
  /** When it was told last, or has ended. */
  lastMs: number;
}

export type OrderedSplit = Omit<OrderResult, 'orderId'>;

/** What is to be done next. */
interface Next {
  readonly replica: SplitReplica;
  readonly wish: SplitWish;
  /** The order that it is for, if it is for one. */
  readonly order?: Ordered;
}

const DONE: OrderedSplit = { outcome: 'done', reason: '' };
const UNDER_WAY: OrderedSplit = { outcome: 'underWay', reason: 'the range is being split' };

/**
 * An order is told again and again, until it is known to be carried out. One that comes so soon after that was sent
 * before it was known; one that has not come for so long is wanted no more.
 */
const TOLD_AGAIN_MS = 5_000;

/** The range is another one than was to be split, or others decide about it. */
const GONE = 'the range has changed, or another replica leads it';

/**
 * Splits of the ranges that are led here, from the reason for one to the end of it.
 *
 * SL1. One at a time per node. Each begins and ends with a checkpoint, and none is urgent: ranges stay served.
 * SL2. What was found, asked for or measured counts for the term and the epoch in which it was. With any other it is
 *      given up, so nothing is proposed that is not about the range as it is; apply would refuse it (splits.ts,
 *      state/reshape/split.ts).
 * SL3. Before a split is proposed its nodes write what waits in memory: the keys that leave are not served until the
 *      checkpoint behind the split is durable (splits.ts S2), and that one has little left to write. They do so in
 *      turn.
 * SL4. A range whose split came to nothing waits before the next try, longer each time.
 * SL5. What people asked for goes first, and fails for good: whoever asks again is told why. What comes of one order is
 *      not told of another, which took its place while it was being carried out.
 * SL6. What was asked for is begun only while it is wanted: not in the middle of a range that was split meanwhile, and
 *      not once the master tells it no more, as it was cancelled or has timed out there while others were in turn.
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

  /** Looks for a range to split. Cheap to call again and again. */
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
   * A split that the master orders of the range's leader, at a key or in the middle. Told again it answers how that one
   * stands; it is done when the range begins or ends at the key.
   */
  order(replica: SplitReplica, at: Bytes | undefined): OrderedSplit {
    const { rangeId, state } = replica;
    const { start, end } = state.descriptor;
    if (at !== undefined && [start, end].some((border) => border.length > 0 && isSame(border, at))) return DONE;
    const known = this.#ordered.get(rangeId);
    if (known !== undefined && isSame(known.at, at) && this.#isCurrent(known)) {
      if (known.outcome.outcome === 'refused') this.#ordered.delete(rangeId);
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
    const led = new Map([...this.#deps.replicas()].filter(({ serving }) => serving).map((r) => [r.rangeId, r]));
    for (const rangeId of this.#ordered.keys()) if (!led.has(rangeId)) this.#ordered.delete(rangeId);
    this.#pauses.keepOnly(led);
    for (const [rangeId, order] of this.#ordered) {
      const { at, outcome } = order;
      const replica = led.get(rangeId);
      if (replica === undefined || outcome !== UNDER_WAY || !this.#keepOrDrop(order, replica)) continue;
      return { replica, wish: { cause: 'admin', ...(at === undefined ? {} : { at }) }, order };
    }
    for (const replica of led.values()) {
      const wish = replica.splitReasons.wish;
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
      const { message } = toServiceError(error);
      logger.info({ range: rangeId, cause, error: message }, 'a range was not split');
      if (cause !== 'admin') replica.splitReasons.refused(message);
      this.#ended(next, { outcome: 'refused', reason: message });
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

  /** Where to cut, and what lies behind: measured already, or now. */
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
