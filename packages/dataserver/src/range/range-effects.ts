import { asBuffer } from '@remora/base';
import type { Effects } from '../state/effects.ts';
import type { LeaseManager } from './leases/lease-manager.ts';
import type { GrantWatches } from './locks/grant-watches.ts';
import type { LockWaits } from './locks/lock-waits.ts';
import type { RangeDeps } from './range-deps.ts';
import type { RangeReplica } from './range-replica.ts';
import type { ReplicaRows } from './replica-rows.ts';
import type { Splits } from './reshape/splits.ts';

/** The parts of a replica that are told. Some of them are built behind the state, on which they rest. */
export interface RangeEffectsDeps extends Pick<RangeDeps, 'logger' | 'meter' | 'neighbours'> {
  readonly waits: LockWaits;
  readonly grants: GrantWatches;
  readonly rows: () => ReplicaRows;
  readonly leases: () => LeaseManager;
  readonly splits: () => Splits;
  readonly keysChanged: () => void;
}

/** Who is told what of the commands that a replica applies: its watchers, those who wait for locks, its leases, its merges. */
export function rangeEffects(replica: RangeReplica, deps: RangeEffectsDeps): Effects {
  const { waits, grants, rows, leases, splits, logger } = deps;
  return {
    onEvents: (revision, events) => {
      rows().written(revision);
      replica.hub.publish(revision, events);
    },
    onNotice: (notice) => {
      // Nobody but one who takes a lock by force tells its holder that it is released.
      if (notice.result.type === 'released') leases().taken(notice.owner.session);
      waits.notify(notice);
      grants.notify(notice);
    },
    onForcedRelease: ({ lock, by = '', reason = '' }, version) => {
      if (!replica.serving) return;
      const { namespace, name } = lock;
      const details = { range: replica.rangeId, namespace, lock: asBuffer(name).toString(), version, by, reason };
      logger.warn(details, 'a lock was taken from its holder by force');
    },
    listeners: replica.lockListeners,
    onHoldDelayed: (hold) => leases().holdDelayed(hold),
    onGrantEnded: (lock, version) => grants.ended(lock, version),
    onMarkLeft: (mark) => leases().markLeft(mark),
    get meter() {
      return replica.leading ? deps.meter : undefined;
    },
    onLeaseGranted: (lease) => leases().granted(lease),
    onLeaseEnded: (id, end) => leases().ended(id, end),
    onSplit: (child, term) => {
      deps.keysChanged();
      splits().applied(child, term);
    },
    onSealed: () => {
      replica.group.tellCommits(); // the merge waits for all replicas (merges.ts MR2)
      replica.merges.sealChanged();
    },
    source: (rangeId) => deps.neighbours.source(rangeId),
    onMerged: (sourceId) => replica.merges.merged(sourceId),
  };
}
