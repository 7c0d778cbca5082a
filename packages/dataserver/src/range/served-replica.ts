import type { RangeInfo } from '@remora/protocol';
import type { LockListeners } from '../lock-watch/lock-listeners.ts';
import type { SplitReasons } from '../splitting/split-reasons.ts';
import type { SplitCommand } from '../state/reshape/split.ts';
import type { WatchHub } from '../watch/watch-hub.ts';
import type { RangeMembers } from './membership/range-members.ts';
import type { ReplicaContext } from './replica-context.ts';
import type { ClosedRevisions } from './requests/closed-revisions.ts';
import type { RangeRequests } from './requests/range-requests.ts';
import type { RangeWatches } from './requests/range-watches.ts';
import type { Merges } from './reshape/merges.ts';
import type { SplitDone } from './reshape/splits.ts';

/** A replica, as the services of its node use it: calls of gateways, watches, merges, splits and reports. */
export interface ServedReplica
  extends Pick<
    ReplicaContext,
    'rangeId' | 'state' | 'group' | 'leadership' | 'load' | 'leading' | 'serving' | 'sealed' | 'replacing' | 'notLeader'
  > {
  readonly requests: RangeRequests;
  readonly hub: WatchHub;
  readonly lockListeners: LockListeners;
  readonly watches: RangeWatches;
  readonly closing: ClosedRevisions;
  readonly members: RangeMembers;
  readonly merges: Merges;
  readonly splitReasons: SplitReasons;
  info(): RangeInfo;
  /** Splits the range, on its leader; `done` is called once that is applied here. */
  split(command: SplitCommand, done: SplitDone): void;
}
