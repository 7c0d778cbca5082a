import type { SplitPolicy } from '@remora/protocol';
import type { Checkpointer } from '../checkpointer.ts';
import type { RevisionSource } from '../revisions/revision-drawer.ts';
import type { RangeMeter } from '../state/effects.ts';
import type { TransactionServiceDeps } from '../transactions/transaction-service.ts';
import type { RangeOptions } from './range-options.ts';
import type { RangeReplica } from './range-replica.ts';
import type { ReplicaRowsDeps } from './replica-rows.ts';
import type { OnApplied } from './requests/applied-command.ts';
import type { DiskRoom } from './requests/disk-room.ts';
import type { MergeNeighbours } from './reshape/merges.ts';
import type { OtherRanges } from './reshape/other-ranges.ts';
import type { SplitsDeps } from './reshape/splits.ts';

/** What a replica of a range is given by the store that it belongs to. */
export interface RangeDeps
  extends ReplicaRowsDeps,
    Pick<SplitsDeps, 'onSplit' | 'following'>,
    Pick<TransactionServiceDeps, 'transactionPeers'> {
  readonly nodeId: number;
  readonly options: RangeOptions;
  readonly drawer: RevisionSource;
  readonly others: OtherRanges;
  readonly checkpointer: Pick<Checkpointer, 'run'>;
  /** The replica has applied that it is no member of its range any more. Called once, from within `apply`. */
  readonly onLeft: (replica: RangeReplica) => void;
  readonly onApplied?: OnApplied;
  readonly neighbours: MergeNeighbours;
  /** It leads, and serves from now on. */
  readonly onServing?: (rangeId: number) => void;
  /** Its part of the node's memory for recent events, as it is now. */
  readonly watchRingShare: () => number;
  /** When ranges are split by themselves, as it is now; undefined: never. */
  readonly splitPolicy: () => SplitPolicy | undefined;
  /** Counts what it applies while it leads. */
  readonly meter?: RangeMeter;
  /** What is left on the node's disk; absent: that is not looked at. */
  readonly room?: DiskRoom;
  /** There is a reason to split it. */
  readonly onSplitWish?: () => void;
}
