import type { LockNotice } from '@remora/lock';
import type { KvEvent } from '@remora/protocol';
import type { HandedTransactions } from '../transactions/range-transactions.ts';
import type { Lease } from './leases.ts';
import type { RangeMeta } from './meta-codec.ts';
import type { Outcomes } from './outcomes.ts';

/** What an applied command causes beside its outcome; given to whoever serves the range on this node. */
export interface Effects {
  onEvents(revision: number, events: readonly KvEvent[]): void;
  onNotice(notice: LockNotice): void;
  onLeaseGranted(lease: Lease): void;
  onLeaseEnded(id: bigint): void;
  /** The range ends where the child begins. Leases that went with it have ended here (`onLeaseEnded`). */
  onSplit(child: RangeStart): void;
}

/** What a range begins with that comes from another one. */
export interface RangeStart {
  readonly meta: RangeMeta;
  readonly outcomes: Outcomes;
  readonly transactions: HandedTransactions;
}
