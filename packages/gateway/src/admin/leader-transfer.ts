import { type Clock, ServiceError } from '@remora/base';
import { type RangeOverview, type RangeStatus, rangeTransferLeader } from '@remora/protocol';
import { pause } from './attempts.ts';
import type { ClusterCalls } from './cluster-calls.ts';

/** How long a transfer may take: Raft gives it up after an election time-out. */
const TRANSFER_MS = 5_000;
const TRANSFER_LOOK_MS = 20;

export interface LeaderTransfer {
  readonly range: RangeOverview;
  readonly toNode: number;
  readonly timeoutMs: number;
}

/** Transfers the leadership of a range and waits until the node leads it. Resolves with the node that led before. */
export async function transferLeadership(
  { calls, clock }: { readonly calls: ClusterCalls; readonly clock: Clock },
  { range, toNode, timeoutMs }: LeaderTransfer,
): Promise<number> {
  const { rangeId } = range.descriptor;
  const endsMs = clock.monotonicMs() + Math.min(timeoutMs, TRANSFER_MS);
  // Not `range.leaderNode`, as the master's knowledge may be a heartbeat old.
  const from = await calls.leader(range, rangeTransferLeader, { rangeId, toNode }, timeoutMs);
  for (;;) {
    const status = await calls.status(toNode, rangeId);
    if (status?.leaderNode === toNode) return from.node;
    if (clock.monotonicMs() >= endsMs) throw notTaken(status, toNode, rangeId);
    await pause(clock, TRANSFER_LOOK_MS);
  }
}

/**
 * The error of a transfer that was not seen to succeed. The node may still lead the range, unless it names another
 * leader.
 */
function notTaken(status: RangeStatus | undefined, toNode: number, rangeId: number): ServiceError {
  const details = { etcd: 'transferTooLong' };
  if (status !== undefined && status.leaderNode !== 0) {
    const message = `node ${toNode} did not become the leader of range ${rangeId} in time; try again`;
    return new ServiceError('UNAVAILABLE', message, { details });
  }
  const message = `node ${toNode} did not confirm in time that it leads range ${rangeId}; it may lead it by now`;
  return new ServiceError('UNKNOWN_OUTCOME', message, { details });
}
