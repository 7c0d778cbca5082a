/**
 * A few ranges over one engine on a virtual clock, and the calls between them, which may be late, lost, duplicated or
 * retried. One seed gives one run. Replicas are not simulated: the log alone determines a range's state.
 */
import { assert, SeededRandom, type ServiceError, spanContains } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { Command, CommandResult, Query, QueryResult, RangeDescriptor, RevisionBlock } from '@remora/protocol';
import type { OtherRanges } from '../../../packages/dataserver/src/range/reshape/other-ranges.ts';
import type { RevisionSource } from '../../../packages/dataserver/src/revisions/revision-drawer.ts';
import { isBorder } from '../../../packages/dataserver/src/state/bounds.ts';
import type { RangeStart } from '../../../packages/dataserver/src/state/effects.ts';
import { DESCRIPTOR, memoryEngine } from '../../../packages/dataserver/test/support/state-bed.ts';
import { routingKey } from '../../../packages/gateway/src/routing/routes/request-keys.ts';
import { type Answer, SimRange, unknown } from './sim-range.ts';
import { Truth } from './truth.ts';

const RETRYABLE: ReadonlySet<string> = new Set(['NOT_LEADER', 'STALE_EPOCH', 'UNAVAILABLE', 'UNKNOWN_OUTCOME']);
/** The largest delay of a message's copy. */
const LATE_MS = 1_500;
/** One of this many runs has homes that lose their majority. */
const FORGETFUL_EVERY = 3;

export class World {
  readonly clock = new ManualClock();
  readonly random: SeededRandom;
  readonly engine = memoryEngine(this.clock);
  readonly truth = new Truth();
  readonly first: RangeDescriptor = { ...DESCRIPTOR, revisionSource: 'master' };
  readonly others: OtherRanges = {
    command: (command, { timeoutMs }, done) =>
      this.command(command, timeoutMs, (error, result) => done(error, result && { result })),
    query: (query, { timeoutMs }, done) => this.#query(query, timeoutMs, done),
  };
  /** The revisions that the master has given out. */
  readonly source: Pick<RevisionSource, 'newest'> = {
    newest: (floor, done) => this.later(10, () => done(undefined, Math.max(floor, this.#newest))),
  };
  readonly #ranges: SimRange[];
  #newest = 1;
  #ids = 2;
  #requests = 0;
  #calm = false;
  splits = 0;
  merges = 0;
  elections = 0;
  lost = 0;
  /** Leases whose home has forgotten something. */
  readonly forgotten = new Set<bigint>();
  /** Audits run only if homes may forget: in other runs audits would hide rows that were left behind. */
  readonly mayForget: boolean;

  constructor(seed: number) {
    this.random = new SeededRandom(seed);
    this.mayForget = seed % FORGETFUL_EVERY === 0;
    this.#ranges = [new SimRange(this, undefined)];
  }

  get ranges(): readonly SimRange[] {
    return this.#ranges;
  }

  get rangeIds(): readonly number[] {
    return Array.from({ length: this.#ids }, (_, i) => i + 1);
  }

  /** A revision for the next entry of a range. */
  block(): RevisionBlock {
    return { first: ++this.#newest, count: 1 };
  }

  later(mostMs: number, work: () => void): void {
    this.clock.setTimer(this.random.int(mostMs + 1), work);
  }

  run(ms: number): void {
    const endMs = this.clock.monotonicMs() + ms;
    for (;;) {
      this.clock.runImmediates();
      const next = this.clock.nextTimerMs();
      if (next === undefined || next > endMs) break;
      this.clock.fireNext();
    }
    this.clock.advance(endMs - this.clock.monotonicMs());
    this.clock.runImmediates();
  }

  /** From now on no message is lost or duplicated. */
  calmDown(): void {
    this.#calm = true;
  }

  // ------------------------------------------------------------------------------------------------ ranges

  rangeOf(key: Uint8Array): SimRange {
    const range = this.#ranges.find(({ state }) => spanContains(state.descriptor, key));
    assert(range !== undefined, 'each key is in a range');
    return range;
  }

  split(at: Uint8Array): void {
    const range = this.rangeOf(at);
    if (!range.serving || !isBorder(at) || Buffer.compare(at, range.state.descriptor.start) === 0) return;
    const { epoch } = range.state.descriptor;
    const childId = ++this.#ids;
    const command: Command = {
      ...{ type: 'split', at, epoch, childId, keys: 0, bytes: 0 },
      replicas: [{ nodeId: 1, replicaId: 10 * childId }],
    };
    range.execute({ command, requestId: '', version: epoch.version }, () => {});
  }

  splitOff(child: RangeStart): void {
    this.splits++;
    const at = this.#ranges.findIndex(({ state }) => state.descriptor.end === child.meta.descriptor.start);
    this.#ranges.splice(at + 1, 0, new SimRange(this, child));
  }

  mergeSomewhere(): void {
    const at = this.random.int(this.#ranges.length);
    const [left, right] = [this.#ranges[at], this.#ranges[at + 1]];
    if (left === undefined || right === undefined || !left.serving || !right.serving) return;
    for (const each of [left, right]) each.applyAll();
    if (this.#ranges[at] !== left || this.#ranges[at + 1] !== right) return; // One of them was split by that.
    this.merges++;
    this.#ranges.splice(at + 1, 1);
    left.absorb(right);
  }

  electSomewhere(): void {
    const range = this.#ranges[this.random.int(this.#ranges.length)];
    if (range?.serving !== true) return;
    this.elections++;
    range.elect();
  }

  /**
   * Some range forgets something that it has acknowledged about a lease. Returns the lease's id, which is not granted
   * again.
   */
  forgetSomewhere(): bigint | undefined {
    const range = this.#ranges[this.random.int(this.#ranges.length)];
    if (range?.serving !== true) return undefined;
    const id = range.forget();
    if (id !== undefined) this.forgotten.add(id);
    return id;
  }

  // ------------------------------------------------------------------------------------------------ calls

  /** One attempt. A caller without an answer tries again later. */
  #query(
    query: Query,
    timeoutMs: number,
    done: (error: ServiceError | undefined, reply: { readonly result: QueryResult } | undefined) => void,
  ): () => void {
    let over = false;
    const once = (error: ServiceError | undefined, result?: QueryResult): void => {
      if (!over) done(error, result && { result });
      over = true;
    };
    this.clock.setTimer(timeoutMs, () => once(unknown()));
    if (!this.#happens(12)) {
      this.later(10, () => {
        const answer = this.rangeOf(routingKey(query)).answer(query);
        if (!this.#happens(12)) this.later(LATE_MS, () => once(answer === undefined ? unknown() : undefined, answer));
      });
    }
    return () => {
      over = true;
    };
  }

  /** Like a gateway: sends the same request until it is answered or until the time is over. */
  command(command: Command, timeoutMs: number, answer: Answer): () => void {
    const requestId = `r${++this.#requests}`;
    const endsMs = this.clock.monotonicMs() + timeoutMs;
    let over = false;
    const finish: Answer = (error, result) => {
      if (!over) answer(error, result);
      over = true;
    };
    const attempt = (): void => {
      if (over) return;
      if (this.clock.monotonicMs() >= endsMs) return finish(unknown(), undefined);
      this.#send(command, requestId, (error, result) => {
        if (error === undefined || !RETRYABLE.has(error.code)) finish(error, result);
        else this.clock.setTimer(5 + this.random.int(25), attempt);
      });
    };
    attempt();
    return () => {
      over = true;
    };
  }

  /** One attempt. It is answered once: by the range, or by a timeout. */
  #send(command: Command, requestId: string, answer: Answer): void {
    let over = false;
    const once: Answer = (error, result) => {
      if (!over) answer(error, result);
      over = true;
    };
    this.clock.setTimer(100 + this.random.int(200), () => once(unknown(), undefined));
    const version = this.rangeOf(routingKey(command)).state.descriptor.epoch.version;
    const deliver = (told: Answer): void => this.#deliver({ command, requestId, version }, told);
    if (!this.#happens(12)) {
      this.later(10, () => deliver((error, result) => this.#reply(once, error, result)));
    }
    if (this.#happens(8)) this.later(LATE_MS, () => deliver(() => {}));
  }

  #deliver(
    request: { readonly command: Command; readonly requestId: string; readonly version: number },
    told: Answer,
  ): void {
    const range = this.rangeOf(routingKey(request.command));
    // Most late copies carry the epoch of their time. A gateway may have sent one of them again with a newer epoch.
    const version = this.random.int(4) === 0 ? range.state.descriptor.epoch.version : request.version;
    range.execute({ ...request, version }, told);
  }

  #reply(answer: Answer, error: ServiceError | undefined, result: CommandResult | undefined): void {
    if (this.#happens(12)) return;
    this.later(10, () => answer(error, result));
  }

  #happens(oneIn: number): boolean {
    if (this.#calm || this.random.int(oneIn) > 0) return false;
    this.lost++;
    return true;
  }
}
