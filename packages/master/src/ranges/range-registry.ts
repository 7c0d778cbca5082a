/**
 * The ranges as the masters know them: what ranges say of themselves, put in order.
 *
 * RR1. A range itself decides on its members and its bounds, in its log; this follows. Of one range the later epoch
 *      counts; its two numbers never fall.
 * RR2. Of two ranges that have a key, the one of the higher `version` has it: splits and merges raise the versions of all
 *      that take part above those they had.
 * RR3. A range begins where it always began: a split leaves the first part to the range itself, and of two that are
 *      merged the first one goes on (scheduling/requests.ts has nothing else done). So a range whose first key a later
 *      version of another one has, has ended: it was merged away.
 * RR4. What has ended never comes back: whatever is left of it has a lower version than whoever has its first key now (RR2), so
 *      it is found to have ended whenever it is told of (RR3). That its id is remembered spares the telling, and answers
 *      those who ask; the last ones are, `ENDED_MAX` of them. What points to a forgotten one points on to where that went.
 * RR5. Asked for the ids of a split again, for the same range at the same epoch, the answer is the same. So all splits of a
 *      range at an epoch make the same child, and the child is known as soon as its parent is known to be cut.
 * RR6. A border that people chose (a cluster that began with several ranges, a split by hand) is known by the range that
 *      begins there, as long as that lives (RR3): nothing takes it away but people, unless they say so
 *      (scheduling/schedulers/merge.ts).
 */
import { compareBytes, equalBytes, ServiceError, type Span, spanContains } from '@remora/base';
import { type Epoch, type RangeDescriptor, type ReplicaDescriptor, staleEpoch } from '@remora/protocol';

/** Ids that were given out for a split. */
export interface AskedSplit {
  readonly rangeId: number;
  /** Of the range, when it asked. */
  readonly epoch: Epoch;
  readonly childId: number;
  /** Of the child: where the range's replicas were, and as what. */
  readonly replicas: readonly ReplicaDescriptor[];
}

/** A range that was merged away. */
export interface EndedRange {
  readonly rangeId: number;
  /** The range that has its first key, by which its end came to be known. */
  readonly into: number;
}

/** Of ranges that were merged away so many are remembered. */
export const ENDED_MAX = 1_000;

export interface RangeImage {
  readonly ranges: readonly RangeDescriptor[];
  readonly asked: readonly AskedSplit[];
  readonly ended: readonly EndedRange[];
  /** Ranges that begin where people chose (RR6). */
  readonly chosen: readonly number[];
}

/** Where new ids come from. */
export interface IdSource {
  rangeId(): number;
  /** The first of so many. */
  replicaIds(count: number): number;
}

export class RangeRegistry {
  readonly #ranges = new Map<number, RangeDescriptor>();
  /** By the range that asked, until it is known to be cut. */
  readonly #asked = new Map<number, AskedSplit>();
  readonly #ended = new Map<number, EndedRange>();
  /** RR6. */
  readonly #chosen = new Set<number>();

  all(): readonly RangeDescriptor[] {
    return [...this.#ranges.values()];
  }

  get(rangeId: number): RangeDescriptor | undefined {
    return this.#ranges.get(rangeId);
  }

  get size(): number {
    return this.#ranges.size;
  }

  /** Into which range one was merged; undefined when it lives, or was never heard of. */
  mergedInto(rangeId: number): number | undefined {
    return this.#ended.get(rangeId)?.into;
  }

  /**
   * What is new about a range: its members, or all of it. Undefined when nothing is, or when it has ended (RR3).
   */
  newsOf(range: RangeDescriptor): 'members' | 'all' | undefined {
    const known = this.#ranges.get(range.rangeId);
    if (known === undefined) return this.#ended.has(range.rangeId) ? undefined : 'all';
    if (range.epoch.version > known.epoch.version) return 'all';
    const later = range.epoch.version === known.epoch.version && range.epoch.confVersion > known.epoch.confVersion;
    return later ? 'members' : undefined;
  }

  /** RR1: of the members alone. */
  changeMembers({ rangeId, epoch, replicas }: RangeDescriptor): void {
    const known = this.#ranges.get(rangeId);
    if (known === undefined) throw new ServiceError('RANGE_NOT_FOUND', `unknown range ${rangeId}`);
    if (epoch.confVersion <= known.epoch.confVersion) return;
    const { version } = known.epoch;
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
    this.#ranges.set(range.rangeId, range);
    if (before !== undefined) this.#adoptChild(before, range);
    for (const other of this.all()) {
      if (other.rangeId !== range.rangeId && hasLater(range, other)) this.#end(other.rangeId, range.rangeId);
    }
  }

  /** RR6: whether the range begins where people chose. */
  isChosen(rangeId: number): boolean {
    return this.#chosen.has(rangeId);
  }

  /** RR6. */
  choose(rangeId: number): void {
    this.#chosen.add(rangeId);
  }

  /** RR5. Throws `RANGE_NOT_FOUND` for what has ended, `STALE_EPOCH` when a later epoch is known. */
  askSplit(range: RangeDescriptor, ids: IdSource): AskedSplit {
    this.describe(range);
    const { rangeId, epoch, replicas } = range;
    const known = this.#ranges.get(rangeId);
    if (known === undefined) throw new ServiceError('RANGE_NOT_FOUND', `range ${rangeId} has ended`);
    if (!isSameEpoch(known.epoch, epoch)) throw staleEpoch([known]);
    const before = this.#asked.get(rangeId);
    if (before !== undefined && isSameEpoch(before.epoch, epoch)) return before;
    // Of another epoch: that child never comes to be, unless it is there.
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
    this.#ranges.clear();
    this.#asked.clear();
    this.#ended.clear();
    for (const range of ranges) this.#ranges.set(range.rangeId, range);
    for (const each of asked) this.#asked.set(each.rangeId, each);
    for (const each of ended) this.#ended.set(each.rangeId, each);
    this.#chosen.clear();
    for (const rangeId of chosen) this.#chosen.add(rangeId);
  }

  /** RR5: between the range as it was and as it is lies the child, unless more has happened since. */
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

  /** RR3: the range of a later version that has the first key of this one. */
  #laterOwner(range: RangeDescriptor): number | undefined {
    return this.all().find((other) => other.rangeId !== range.rangeId && hasLater(other, range))?.rangeId;
  }

  /** RR4. */
  #end(rangeId: number, into: number): void {
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

/** RR2, RR3: whether `owner` has the first key of the other one, by a later version. */
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
