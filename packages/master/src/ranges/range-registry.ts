/**
 * The ranges as the masters know them, derived from the reports of the ranges.
 *
 * RR1. A range itself decides on its members and bounds, in its log; the registry follows. Of two reports about a
 *      range, the one with the later epoch counts; neither number of an epoch ever decreases.
 * RR2. If two ranges claim the same key, the one with the higher `version` has it: splits and merges raise the versions
 *      of all participants above their previous ones.
 * RR3. A range always starts where it started at first: after a split the original range keeps the first part, and
 *      after a merge the first of the two ranges remains (scheduling/requests.ts allows nothing else). So a range whose
 *      first key belongs to another range of a later version has ended: it was merged away.
 * RR4. A range that has ended never returns. Any remaining replica of it has a lower version than the range that now
 *      has its first key (RR2), so every later report about it shows that it has ended (RR3). Its id is remembered only
 *      to save this check and to answer queries; the registry keeps the last `ENDED_MAX` of them. A reference to a
 *      forgotten range is replaced by the range into which that one was merged.
 * RR5. Repeated requests for the ids of a split of the same range at the same epoch get the same answer. So all splits
 *      of a range at an epoch create the same child, and the child is known as soon as its parent is known to be split.
 * RR6. A border that people chose (at the founding of the cluster, or by a manual split) is recorded with the range
 *      that starts there, for as long as that range exists (RR3). Only people remove it, unless a setting allows it
 *      otherwise (scheduling/schedulers/merge.ts).
 */
import { compareBytes, equalBytes, ServiceError, type Span, spanContains } from '@remora/base';
import { type Epoch, type RangeDescriptor, type ReplicaDescriptor, staleEpoch } from '@remora/protocol';

/** Ids that were allocated for a split. */
export interface AskedSplit {
  readonly rangeId: number;
  /** The epoch of the range when it asked. */
  readonly epoch: Epoch;
  readonly childId: number;
  /** The child's replicas: on the nodes of the range's replicas, in the same roles. */
  readonly replicas: readonly ReplicaDescriptor[];
}

/** A range that was merged away. */
export interface EndedRange {
  readonly rangeId: number;
  /** The range that has its first key, which proved that it had ended. */
  readonly into: number;
}

/** The number of merged ranges that are remembered. */
export const ENDED_MAX = 1_000;

export interface RangeImage {
  readonly ranges: readonly RangeDescriptor[];
  readonly asked: readonly AskedSplit[];
  readonly ended: readonly EndedRange[];
  /** Ranges that begin where a person chose (RR6). */
  readonly chosen: readonly number[];
}

/** Allocates new ids. */
export interface IdSource {
  rangeId(): number;
  /** Returns the first of `count` ids. */
  replicaIds(count: number): number;
}

export class RangeRegistry {
  readonly #ranges = new Map<number, RangeDescriptor>();
  /** By the range that asked, until it is known to be split. */
  readonly #asked = new Map<number, AskedSplit>();
  readonly #ended = new Map<number, EndedRange>();
  /** RR6. */
  readonly #chosen = new Set<number>();
  /** All ranges, until one changes. */
  #all: readonly RangeDescriptor[] | undefined;

  /** The same list as long as nothing changes. */
  all(): readonly RangeDescriptor[] {
    this.#all ??= [...this.#ranges.values()];
    return this.#all;
  }

  get(rangeId: number): RangeDescriptor | undefined {
    return this.#ranges.get(rangeId);
  }

  get size(): number {
    return this.#ranges.size;
  }

  /** The range into which a range was merged; undefined if it still exists, or is unknown. */
  mergedInto(rangeId: number): number | undefined {
    return this.#ended.get(rangeId)?.into;
  }

  /**
   * What a report changes about a range: its members, or everything. Undefined if nothing, or if the range has ended
   * (RR3).
   */
  newsOf(range: RangeDescriptor): 'members' | 'all' | undefined {
    const known = this.#ranges.get(range.rangeId);
    if (known === undefined) return this.#ended.has(range.rangeId) ? undefined : 'all';
    if (range.epoch.version > known.epoch.version) return 'all';
    const later = range.epoch.version === known.epoch.version && range.epoch.confVersion > known.epoch.confVersion;
    return later ? 'members' : undefined;
  }

  /** RR1: changes only the members. */
  changeMembers({ rangeId, epoch, replicas }: RangeDescriptor): void {
    const known = this.#ranges.get(rangeId);
    if (known === undefined) throw new ServiceError('RANGE_NOT_FOUND', `unknown range ${rangeId}`);
    if (epoch.confVersion <= known.epoch.confVersion) return;
    const { version } = known.epoch;
    this.#all = undefined;
    this.#ranges.set(rangeId, { ...known, epoch: { confVersion: epoch.confVersion, version }, replicas });
  }

  /** RR1 to RR5. */
  describe(range: RangeDescriptor): void {
    const news = this.newsOf(range);
    if (news === undefined) return;
    if (news === 'members') return this.changeMembers(range);
    const owner = this.#laterOwner(range);
    if (owner !== undefined) return this.#end(range.rangeId, owner);
    const before = this.#ranges.get(range.rangeId);
    this.#all = undefined;
    this.#ranges.set(range.rangeId, range);
    if (before !== undefined) this.#adoptChild(before, range);
    for (const other of this.all()) {
      if (other.rangeId !== range.rangeId && hasLater(range, other)) this.#end(other.rangeId, range.rangeId);
    }
  }

  /** RR6: whether the range begins where a person chose. */
  isChosen(rangeId: number): boolean {
    return this.#chosen.has(rangeId);
  }

  /** RR6. */
  choose(rangeId: number): void {
    this.#chosen.add(rangeId);
  }

  /** RR5. Throws `RANGE_NOT_FOUND` for an ended range, `STALE_EPOCH` if a later epoch is known. */
  askSplit(range: RangeDescriptor, ids: IdSource): AskedSplit {
    this.describe(range);
    const { rangeId, epoch, replicas } = range;
    const known = this.#ranges.get(rangeId);
    if (known === undefined) throw new ServiceError('RANGE_NOT_FOUND', `range ${rangeId} has ended`);
    if (!isSameEpoch(known.epoch, epoch)) throw staleEpoch([known]);
    const before = this.#asked.get(rangeId);
    if (before !== undefined && isSameEpoch(before.epoch, epoch)) return before;
    // The child of another epoch will never exist, unless it does already.
    if (before !== undefined && !this.#ranges.has(before.childId)) this.#chosen.delete(before.childId);
    const [childId, first] = [ids.rangeId(), ids.replicaIds(replicas.length)];
    const asked: AskedSplit = {
      ...{ rangeId, epoch, childId },
      replicas: replicas.map((replica, i) => ({ ...replica, replicaId: first + i })),
    };
    this.#asked.set(rangeId, asked);
    return asked;
  }

  image(): RangeImage {
    return {
      ranges: this.all(),
      asked: [...this.#asked.values()],
      ended: [...this.#ended.values()],
      chosen: [...this.#chosen],
    };
  }

  restore({ ranges, asked, ended, chosen }: RangeImage): void {
    this.#all = undefined;
    this.#ranges.clear();
    this.#asked.clear();
    this.#ended.clear();
    for (const range of ranges) this.#ranges.set(range.rangeId, range);
    for (const each of asked) this.#asked.set(each.rangeId, each);
    for (const each of ended) this.#ended.set(each.rangeId, each);
    this.#chosen.clear();
    for (const rangeId of chosen) this.#chosen.add(rangeId);
  }

  /** RR5: the child lies between the range's old and new bounds, unless more has happened since. */
  #adoptChild(before: RangeDescriptor, now: RangeDescriptor): void {
    const asked = this.#asked.get(now.rangeId);
    this.#asked.delete(now.rangeId);
    if (asked === undefined || asked.epoch.version !== before.epoch.version) return;
    if (now.epoch.version !== before.epoch.version + 1 || !equalBytes(before.start, now.start)) return;
    if (compareEnds(now.end, before.end) >= 0) return;
    const epoch = { confVersion: asked.epoch.confVersion, version: now.epoch.version };
    const { childId: rangeId, replicas } = asked;
    this.describe({ rangeId, start: now.end, end: before.end, epoch, replicas, revisionSource: now.revisionSource });
  }

  /** RR3: returns the range of a later version that has the first key of this one. */
  #laterOwner(range: RangeDescriptor): number | undefined {
    return this.all().find((other) => other.rangeId !== range.rangeId && hasLater(other, range))?.rangeId;
  }

  /** RR4. */
  #end(rangeId: number, into: number): void {
    this.#all = undefined;
    this.#ranges.delete(rangeId);
    this.#asked.delete(rangeId);
    this.#chosen.delete(rangeId);
    this.#ended.set(rangeId, { rangeId, into });
    for (const oldest of this.#ended.values()) {
      if (this.#ended.size <= ENDED_MAX) break;
      this.#forget(oldest);
    }
  }

  /** RR4. */
  #forget({ rangeId, into }: EndedRange): void {
    this.#ended.delete(rangeId);
    for (const ended of this.#ended.values()) {
      if (ended.into === rangeId) this.#ended.set(ended.rangeId, { rangeId: ended.rangeId, into });
    }
  }
}

/** RR2, RR3: whether `owner` has the first key of the other range, with a later version. */
function hasLater(owner: RangeDescriptor, other: RangeDescriptor): boolean {
  return owner.epoch.version > other.epoch.version && spanContains(owner, other.start);
}

function isSameEpoch(a: Epoch, b: Epoch): boolean {
  return a.confVersion === b.confVersion && a.version === b.version;
}

/** An empty end is behind all others. */
function compareEnds(a: Span['end'], b: Span['end']): number {
  if (a.length === 0 || b.length === 0) return Math.sign(b.length) - Math.sign(a.length);
  return compareBytes(a, b);
}
