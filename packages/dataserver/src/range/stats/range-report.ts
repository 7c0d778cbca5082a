import type { LeaderReport, PeerReport, QueryResult, RangeReport } from '@remora/protocol';
import { isJoint, type ProgressStatus } from '@remora/raft';
import type { SplitReasons } from '../../splitting/split-reasons.ts';
import type { RangeMembers } from '../membership/range-members.ts';
import type { ReplicaContext } from '../replica-context.ts';

interface ReportedReplica extends Pick<ReplicaContext, 'rangeId' | 'group' | 'state' | 'leading' | 'load'> {
  readonly members: RangeMembers;
  readonly splitReasons: SplitReasons;
}

/** A replica's report to the master. `silent`: it asks whether the replica still belongs to its range. */
export function rangeReport(replica: ReportedReplica, silent: boolean, nowMs: number): RangeReport {
  const { group, state } = replica;
  return {
    rangeId: replica.rangeId,
    replicaId: group.replicaId,
    epoch: state.descriptor.epoch,
    term: group.term,
    applied: state.applied.index,
    bytes: state.bytes,
    silent,
    lead: replica.leading ? leaderReport(replica, nowMs) : undefined,
  };
}

function leaderReport({ group, state, load, members, splitReasons }: ReportedReplica, nowMs: number): LeaderReport {
  const { conf, changePending, firstIndex, lastIndex, progress } = group.status();
  const { liveness } = members;
  liveness.look(progress, nowMs);
  return {
    keys: state.keys,
    logEntries: lastIndex + 1 - firstIndex,
    joint: isJoint(conf),
    changePending,
    ...load.rates(),
    peers: progress.map((peer) => peerReport(peer, liveness.silentMs(peer, nowMs))),
    sizeRemark: splitReasons.remark,
  };
}

function peerReport(peer: ProgressStatus, silentMs: number): PeerReport {
  const { replica: replicaId, state, match, lagEntries, lagBytes, caughtUp } = peer;
  return { replicaId, state, match, lagEntries, lagBytes, caughtUp, silentMs };
}

/** The approximate number of bytes that a query read. */
export function readBytes(result: QueryResult): number {
  if (result.type !== 'range') return 0;
  let bytes = 0;
  for (const { key, value } of result.kvs) bytes += key.length + value.length;
  return bytes;
}
