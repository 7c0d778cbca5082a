import { ServiceError } from '@remora/base';
import type { CommandResult } from '@remora/protocol';
import type { RangeCounts, RangeLeases, RangeProgress, RangeShape } from '../range-fields.ts';

/**
 * Makes older versions unreadable up to a revision. Where the master numbers changes, the revision may be from another
 * range and above this one's: the range then moves on to it, so that its later writes are above it (N3 of
 * numbering.ts). The leader has made sure that the master has allocated the revision (CL5 of closed-revisions.ts).
 */
export function compact(state: RangeProgress & Pick<RangeShape, 'descriptor'>, revision: number): CommandResult {
  if (revision > state.revision && state.descriptor.revisionSource === 'range') {
    throw new ServiceError('FUTURE_REVISION', `revision ${revision} is in the future; the newest is ${state.revision}`);
  }
  // At 0, before the first compaction, there is nothing to do: etcd accepts that, too.
  if (revision < state.compactRevision || (revision === state.compactRevision && revision > 0)) {
    throw new ServiceError('COMPACTED', `revision ${revision} is already compacted`, {
      details: { compactRevision: state.compactRevision },
    });
  }
  state.compactRevision = revision;
  state.revision = Math.max(state.revision, revision);
  return { type: 'compact' };
}

/**
 * Restored keys get revisions above all that the cluster that they come from can have used (design §8). The gateway
 * that asks may not know yet that the only range was split. If only this range were raised, it would be ahead of the
 * others for ever.
 */
export function raiseRevision(
  state: RangeProgress & Pick<RangeCounts, 'keys'> & Pick<RangeLeases, 'leases'> & Pick<RangeShape, 'bounds'>,
  to: number,
): CommandResult {
  if (!state.bounds.whole) {
    throw new ServiceError('INVALID_ARGUMENT', 'revisions are raised in a cluster of one range; this one has several');
  }
  if (state.keys > 0 || state.leases.size > 0) {
    const message = `revisions are raised in an empty cluster; this one has ${state.keys} keys and ${state.leases.size} leases`;
    throw new ServiceError('INVALID_ARGUMENT', message);
  }
  state.revision = Math.max(state.revision, to);
  state.compactRevision = Math.max(state.compactRevision, state.revision);
  return { type: 'raiseRevision' };
}

/** More revisions than a range can have used without the survivor's knowledge: as many as a restore skips. */
const REVISIONS_SKIPPED = 1_000_000_000_000;

/**
 * A replica goes on alone, perhaps without the last changes of its range: its new writes are above whatever revisions
 * those had. Everything before is compacted, because clients may have seen more than is left: a client that continues
 * from there gets an error.
 */
export function skipRevisions(state: Pick<RangeProgress, 'revision' | 'compactRevision'>): void {
  state.revision += REVISIONS_SKIPPED;
  state.compactRevision = state.revision;
}
