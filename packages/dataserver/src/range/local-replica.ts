import { assert, ServiceError } from '@remora/base';
import type { CommandResult, Epoch, QueryResult, RangeReply } from '@remora/protocol';
import type { Group } from '@remora/raft';
import type { RangeState } from '../state/range-state.ts';
import { sealedRefusal } from '../state/reshape/merge.ts';
import type { Leadership } from './membership/leadership.ts';
import type { RangeClock } from './range-clock.ts';
import type { ReplicaContext } from './replica-context.ts';
import type { ReplicaRows } from './replica-rows.ts';
import type { SplitOffRanges } from './reshape/split-off-ranges.ts';
import type { RangeLoad } from './stats/range-load.ts';

interface LocalReplicaParts {
  readonly state: RangeState;
  readonly leadership: Leadership;
  readonly time: RangeClock;
  readonly load: RangeLoad;
  readonly rows: ReplicaRows;
  readonly splitOff: SplitOffRanges;
}

/** The context of a replica on this node. */
export class LocalReplica implements ReplicaContext {
  readonly state: RangeState;
  readonly leadership: Leadership;
  readonly time: RangeClock;
  readonly load: RangeLoad;
  readonly #rows: ReplicaRows;
  readonly #splitOff: SplitOffRanges;
  #group: Group | undefined;

  constructor({ state, leadership, time, load, rows, splitOff }: LocalReplicaParts) {
    this.state = state;
    this.leadership = leadership;
    this.time = time;
    this.load = load;
    this.#rows = rows;
    this.#splitOff = splitOff;
  }

  get rangeId(): number {
    return this.state.rangeId;
  }

  attach(group: Group): void {
    this.#group = group;
  }

  get group(): Group {
    assert(this.#group !== undefined, 'a replica is attached to its group before it serves');
    return this.#group;
  }

  /** The term of the group; 0 before the replica is attached to it. */
  get term(): number {
    return this.#group?.term ?? 0;
  }

  get leading(): boolean {
    return this.leadership.leading;
  }

  get serving(): boolean {
    return this.leadership.serving;
  }

  get servingTerm(): number {
    return this.serving && this.state.merging.seal === undefined ? this.leadership.ownTerm : 0;
  }

  get sealed(): ServiceError | undefined {
    return this.state.merging.seal === undefined ? undefined : sealedRefusal(this.state.descriptor);
  }

  get replacing(): boolean {
    return this.#rows.replacing;
  }

  isStale(epoch: Epoch): boolean {
    return epoch.version !== this.state.descriptor.epoch.version;
  }

  unreadable(): ServiceError | undefined {
    if (!this.replacing) return this.sealed;
    return new ServiceError('UNAVAILABLE', 'this replica is installing a snapshot; ask again, or another replica', {
      details: { rangeId: this.rangeId },
    });
  }

  staleEpoch(): ServiceError {
    return this.#splitOff.staleEpoch();
  }

  notLeader(): ServiceError {
    return this.leadership.notLeader();
  }

  reply(result: CommandResult | QueryResult, revision = this.state.revision): RangeReply {
    // A time that this node counted when it led last, or never did, is not the time of the range.
    const rangeTimeMs = this.serving ? this.time.nowMs() : 0;
    return { revision, raftTerm: this.group.term, rangeTimeMs, result };
  }
}
