import { ServiceError, type Span } from '@remora/base';
import {
  type Compare,
  compareHolds,
  isLockCompare,
  type KeyCompare,
  type KvOp,
  type KvResult,
  type Query,
  type RangeOp,
  type RangeReply,
  type RangeResult,
  rangeOp,
  type Txn,
  type TxnResult,
} from '@remora/protocol';
import { hullOf, keysSpan } from '../routes/request-keys.ts';
import type { Route } from '../routes/route-map.ts';
import { eachOf } from './each-of.ts';
import type { NewestRevision } from './newest-revision.ts';
import { cut, joined, keyOrder, type ReadPart } from './range-parts.ts';

export interface SnapshotReadDeps {
  readonly newest: NewestRevision;
  /** Resolves with the parts of a span by range, once all of them are known. */
  readonly routesOf: (span: Span) => Promise<readonly Route[]>;
  /** Asks the range that has all keys of the span; STALE_EPOCH if none has. */
  readonly ask: (query: Query, span: Span) => Promise<RangeReply>;
  /** Waits a moment, in which this gateway may learn about ranges. */
  readonly pause: () => Promise<void>;
  readonly signal: AbortSignal;
}

export type SnapshotReply = Omit<RangeReply, 'rangeTimeMs'> & { readonly result: KvResult };

/** Ranges that one read asks at a time. */
const RANGES_AT_A_TIME = 8;
/** Bytes of keys and values in one answer: about what a single range can send. */
const ANSWER_BYTES_MAX = 32 * 1024 * 1024;

export type ReadQuery = Extract<Query, { type: 'range' | 'readTxn' }>;

/** Parts of reads that one range answers together. */
type Group = readonly ReadPart[];

/**
 * One read over several ranges, at one revision (design §8).
 *
 * SR1. The read returns the state at one revision, drawn from the master after the read came; a serializable read takes
 *      one that was drawn a moment before. Each range closes the revision before it is read, so every change
 *      acknowledged before the read is in the state, and no change is added to it later.
 * SR2. A range that counted revisions by itself may have used revisions that the master has not issued yet. If a range
 *      reports such a revision (its floor), the read starts again at a revision above it.
 * SR3. A read that names a revision is made at that one, if it is not above the drawn one. If the drawn one is not
 *      fresh, a revision above it may have been issued since; only a fresh one decides that.
 * SR4. Ranges that were split or merged between two steps are asked again, for the parts that they have now. The
 *      revision stays the same, so it does not matter when each part was read.
 * SR5. The number of calls at a time and the bytes of the answer are bounded. If the read has a limit, ranges after
 *      those that fill it are only asked how many keys they have: `count` counts all keys, as in etcd.
 */
export class SnapshotRead {
  readonly #deps: SnapshotReadDeps;
  /** SR1. */
  #at = 0;
  /** Whether the revision was drawn before the read came. */
  #isRecent = false;
  #bytes = 0;
  #raftTerm = 0;

  constructor(deps: SnapshotReadDeps) {
    this.#deps = deps;
  }

  /**
   * `notBefore`: a revision that the master issued after the read came, or 0; for a serializable read, one that its
   * client has seen. The answer is not older.
   */
  async run(query: ReadQuery, notBefore = 0): Promise<SnapshotReply> {
    const { newest, signal } = this.#deps;
    let { serializable } = query;
    let drawn = serializable ? 0 : notBefore;
    for (let floor = notBefore; ; drawn = 0) {
      const recent = serializable ? newest.recent(Math.max(1, floor)) : undefined;
      this.#isRecent = recent !== undefined;
      this.#at = recent ?? (drawn > 0 ? drawn : await newest.draw(floor, signal));
      this.#bytes = 0;
      try {
        const result = await (query.type === 'range' ? this.#range(query.op) : this.#txn(query.txn));
        return { revision: this.#at, raftTerm: this.#raftTerm, result };
      } catch (error) {
        if (error instanceof TooOld) {
          serializable = false;
          continue;
        }
        const higher = this.#higherFloor(error);
        if (higher === undefined) throw error;
        floor = higher;
      }
    }
  }

  /**
   * The lowest revision for a further attempt if the drawn one is too low: by SR2, or because of a compaction
   * meanwhile.
   */
  #higherFloor(error: unknown): number | undefined {
    if (error instanceof TooLow) return error.floor;
    const compacted = error instanceof ServiceError && error.code === 'COMPACTED' ? error.details?.compactRevision : 0;
    return typeof compacted === 'number' && compacted > this.#at ? compacted : undefined;
  }

  // -------------------------------------------------------------------------------------------- operations

  async #range(op: RangeOp): Promise<RangeResult> {
    const [part] = await this.#partsOf([op]);
    const order = op.limit > 0 && !op.countOnly ? keyOrder(op) : undefined;
    if (part !== undefined && order !== undefined) return this.#limited(part, order);
    const [result = NOTHING] = part === undefined ? [] : await this.#read([part]);
    return result;
  }

  /** SR5. Reads range after range, and more of them at a time while the limit is not filled. */
  async #limited({ op, span }: ReadPart, order: 'ascending' | 'descending'): Promise<RangeResult> {
    const results: RangeResult[] = [];
    let rest = [...(await this.#deps.routesOf(span))];
    let missing = op.limit;
    for (let width = 1; rest.length > 0; width = Math.min(2 * width, RANGES_AT_A_TIME)) {
      const taken = missing === 0 ? rest.length : Math.min(width, rest.length);
      const routes = order === 'ascending' ? rest.slice(0, taken) : rest.slice(-taken);
      rest = order === 'ascending' ? rest.slice(taken) : rest.slice(0, -taken);
      // One pair tells that more keys follow; `count` does not tell that if the read filters keys.
      const wanted = missing > 0 ? { ...op, limit: missing } : { ...op, limit: 1, keysOnly: true };
      const [found = NOTHING] = await this.#read([cut({ op: wanted, span }, spanOf(routes))]);
      if (missing > 0) results.push(found);
      else results.push({ ...found, kvs: [], more: found.more || found.kvs.length > 0 });
      missing = Math.max(0, missing - found.kvs.length);
    }
    return joined(op, order === 'ascending' ? results : results.reverse());
  }

  async #txn({ compare, success, failure }: Txn): Promise<TxnResult> {
    const keys = compare.map(keyCompare);
    const compared = await this.#read(await this.#partsOf(keys.map(readFor)));
    const succeeded = keys.every((one, i) => holds(one, compared[i] ?? NOTHING));
    return { type: 'txn', succeeded, results: await this.#branch(succeeded ? success : failure) };
  }

  async #branch(ops: readonly KvOp[]): Promise<readonly KvResult[]> {
    const reads = ops.filter((op) => op.type === 'range');
    const found = await this.#read(await this.#partsOf(reads));
    const byOp = new Map<KvOp, KvResult>(reads.map((op, i) => [op, found[i] ?? NOTHING]));
    const results: KvResult[] = [];
    for (const op of ops) results.push(byOp.get(op) ?? (await this.#other(op)));
    return results;
  }

  #other(op: KvOp): Promise<TxnResult> {
    if (op.type === 'txn') return this.#txn(op.txn);
    throw new ServiceError('INVALID_ARGUMENT', 'a read-only transaction has an operation that writes');
  }

  /** SR3. */
  async #partsOf(ops: readonly RangeOp[]): Promise<readonly ReadPart[]> {
    for (const op of ops) if (op.revision > this.#at) await this.#checkFloor(op);
    return ops.map((op) => ({ op: op.revision > 0 ? op : { ...op, revision: this.#at }, span: keysSpan(op) }));
  }

  /** A revision above the drawn one is in the future, unless ranges used it while they counted by themselves (SR2). */
  async #checkFloor(op: RangeOp): Promise<never> {
    if (this.#isRecent) throw new TooOld(); // SR3
    const [route] = await this.#deps.routesOf(keysSpan(op));
    if (route !== undefined) await this.#close(0, route);
    const message = `revision ${op.revision} is in the future; the newest is ${this.#at}`;
    throw new ServiceError('FUTURE_REVISION', message, { details: { revision: this.#at } });
  }

  // -------------------------------------------------------------------------------------------- ranges

  /** Returns the answers to reads, in their order. */
  async #read(reads: readonly ReadPart[]): Promise<readonly RangeResult[]> {
    const parts: (readonly ReadPart[])[] = [];
    const groups = new Map<number, ReadPart[]>();
    for (const read of reads) {
      const routes = await this.#deps.routesOf(read.span);
      const cuts = routes.map((route) => {
        const part = cut(read, route);
        const group = groups.get(route.range.rangeId);
        if (group === undefined) groups.set(route.range.rangeId, [part]);
        else group.push(part);
        return part;
      });
      parts.push(cuts);
    }
    const found = new Map<ReadPart, RangeResult>();
    await eachOf([...groups.values()], RANGES_AT_A_TIME, async (group) => {
      const results = await this.#readGroup(group);
      for (const [i, part] of group.entries()) found.set(part, results[i] ?? NOTHING);
    });
    return reads.map(({ op }, i) =>
      joined(
        op,
        (parts[i] ?? []).map((part) => found.get(part) ?? NOTHING),
      ),
    );
  }

  /** Reads parts that were in one range when they were grouped. */
  async #readGroup(group: Group): Promise<readonly RangeResult[]> {
    try {
      return await this.#readIn(group);
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      // SR4. The range has been split since, or has a new leader that has not closed the revision.
      if (error.code !== 'STALE_EPOCH' && error.code !== 'FUTURE_REVISION') throw error;
      await this.#deps.pause();
      return this.#read(group);
    }
  }

  async #readIn(group: Group): Promise<readonly RangeResult[]> {
    const span = spanOf(group.map((part) => part.span));
    const ops = group.map(({ op }) => op);
    await this.#close(Math.max(...ops.map((op) => op.revision)), span);
    // Any replica that has closed the revision can answer; another one answers FUTURE_REVISION.
    const txn = { compare: [], success: ops, failure: [] };
    const reply = await this.#deps.ask({ type: 'readTxn', txn, serializable: true }, span);
    const { result } = reply;
    if (result.type !== 'txn') throw unexpected(result);
    this.#raftTerm = Math.max(this.#raftTerm, reply.raftTerm);
    return result.results.map((one) => this.#counted(one));
  }

  /** SR1, SR2. */
  async #close(revision: number, span: Span): Promise<void> {
    const { result } = await this.#deps.ask({ type: 'closedRevision', revision }, span);
    if (result.type !== 'closedRevision') throw unexpected(result);
    if (result.floor > this.#at) throw new TooLow(result.floor);
  }

  /** SR5. */
  #counted(result: KvResult): RangeResult {
    if (result.type !== 'range') throw unexpected(result);
    for (const { key, value } of result.kvs) this.#bytes += key.length + value.length;
    if (this.#bytes <= ANSWER_BYTES_MAX) return result;
    const message = `the answer is too large; at most ${ANSWER_BYTES_MAX} bytes are allowed: read in parts, with a limit`;
    throw new ServiceError('RESOURCE_EXHAUSTED', message);
  }
}

/** SR2. */
class TooLow extends Error {
  override readonly name = 'TooLow';
  readonly floor: number;

  constructor(floor: number) {
    super(`the revision that was drawn is below ${floor}`);
    this.floor = floor;
  }
}

/** SR3. */
class TooOld extends Error {
  override readonly name = 'TooOld';
}

const NOTHING: RangeResult = { type: 'range', kvs: [], more: false, count: 0 };
const NO_SPAN: Span = { start: Buffer.alloc(0), end: Buffer.alloc(0) };

function spanOf(spans: readonly Span[]): Span {
  return spans.reduce<Span | undefined>(hullOf, undefined) ?? NO_SPAN;
}

/** Locks keep no history, so the state of a lock at a revision is unknown. */
function keyCompare(compare: Compare): KeyCompare {
  if (!isLockCompare(compare)) return compare;
  throw new ServiceError(
    'INVALID_ARGUMENT',
    'a transaction that compares a lock must be sent as a command, not as a read',
  );
}

/** Returns the read that tells whether a comparison holds. */
function readFor(compare: KeyCompare): RangeOp {
  return rangeOp(compare, { keysOnly: compare.target.of !== 'value' });
}

/** As in one range: a span without keys compares like an absent key. */
function holds(compare: KeyCompare, { kvs }: RangeResult): boolean {
  return kvs.length === 0 ? compareHolds(compare, undefined) : kvs.every((kv) => compareHolds(compare, kv));
}

function unexpected({ type }: RangeReply['result']): ServiceError {
  return new ServiceError('INTERNAL', `a range answered with ${type}, which does not fit the request`);
}
