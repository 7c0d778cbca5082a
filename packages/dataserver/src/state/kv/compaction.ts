import { ServiceError } from '@remora/base';
import type { CommandResult } from '@remora/protocol';
import type { RangeCounts, RangeLeases, RangeProgress, RangeShape } from '../range-fields.ts';

/**
 * Makes older versions unreadable up to a revision. Where the master numbers changes, it may be one of another range,
 * which this one has not reached: it moves on to that, so that what it writes later is above it (N3 of numbering.ts).
 * Its leader has made sure that the master has given it out (CL5 of closed-revisions.ts).
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
 * What restored keys get is above all that the cluster they come from can have used (design §8). The gateway that asks
 * for it may not have heard yet that the only range was split: raised alone, this one would be ahead of the others for
 * good.
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

/** More than a range can have used that its survivor does not know of: as many as a restore leaves out. */
const REVISIONS_SKIPPED = 1_000_000_000_000;

/**
 * A replica goes on alone, perhaps without the last changes of its range: what it writes from now on is above whatever
 * they had. All before is compacted, as clients may have seen more of it than is there: who goes on from there is told
 * so.
 */
export function skipRevisions(state: Pick<RangeProgress, 'revision' | 'compactRevision'>): void {
  state.revision += REVISIONS_SKIPPED;
  state.compactRevision = state.revision;
}
