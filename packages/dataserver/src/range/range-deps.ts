import type { SpokenVersions } from '@remora/base';
import type { SplitPolicy } from '@remora/protocol';
import type { Checkpointer } from '../checkpointer.ts';
import type { StoreHeat } from '../heat/store-heat.ts';
import type { RangeTimes } from '../range-times.ts';
import type { RevisionSource } from '../revisions/revision-drawer.ts';
import type { RangeMeter } from '../state/effects.ts';
import type { TransactionPeers } from '../transactions/intent-resolver.ts';
import type { RangeOptions } from './range-options.ts';
import type { ReplicaRowsDeps } from './replica-rows.ts';
import type { OnApplied } from './requests/applied-command.ts';
import type { DiskRoom } from './requests/disk-room.ts';
import type { MergeNeighbours } from './reshape/merges.ts';
import type { OtherRanges } from './reshape/other-ranges.ts';
import type { SplitOffRangesDeps } from './reshape/split-off-ranges.ts';
import type { SplitsDeps } from './reshape/splits.ts';

/** What the store gives to each replica of a range. */
export interface RangeDeps extends ReplicaRowsDeps, Pick<SplitsDeps, 'onSplit'>, Pick<SplitOffRangesDeps, 'following'> {
  readonly nodeId: number;
  readonly options: RangeOptions;
  readonly drawer: RevisionSource;
  /** The revision of users and roles that this node knows; 0: none. */
  readonly authRevision: () => number;
  /** What this node can write and read, and the version in force; absent: the first version. */
  readonly versions?: SpokenVersions;
  readonly others: OtherRanges;
  readonly checkpointer: Pick<Checkpointer, 'run'>;
  /** If absent, abandoned transactions are finished only when another caller asks for it. */
  readonly transactionPeers?: TransactionPeers;
  /** The replica has applied its own removal from the range. Called once, from within `apply`. */
  readonly onLeft: (rangeId: number) => void;
  readonly onApplied?: OnApplied;
  readonly neighbours: MergeNeighbours;
  /** The replica leads, and serves from now on. */
  readonly onServing?: (rangeId: number) => void;
  /** The replica's current share of the node's memory for recent events. */
  readonly watchRingShare: () => number;
  /** The latest time of any range here, at most about a second old; absent: not known. */
  readonly latestTimeMs?: () => number;
  /** The current policy of automatic splits; undefined: ranges are not split automatically. */
  readonly splitPolicy: () => SplitPolicy | undefined;
  /** Counts what the replica applies while it leads. */
  readonly meter?: RangeMeter;
  /** Measures the way of entries; absent: nothing does. */
  readonly times?: RangeTimes;
  /** The room left on the node's disk; absent: it is not checked. */
  readonly room?: DiskRoom;
  /** There is a reason to split the range. */
  readonly onSplitWish?: () => void;
  /** Learns the keys of requests, for all ranges of the node. */
  readonly heat: StoreHeat;
  /** Something has happened to the range (replicas/active-ranges.ts AC1). */
  readonly onActive?: (rangeId: number) => void;
}
