import type { LeaderReport, PeerReport, QueryResult, RangeReport } from '@remora/protocol';
import { isJoint, type ProgressStatus } from '@remora/raft';
import type { SplitReasons } from '../../splitting/split-reasons.ts';
import type { RangeMembers } from '../membership/range-members.ts';
import type { ReplicaContext } from '../replica-context.ts';

type Rates = ReturnType<ReplicaContext['load']['rates']>;

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

/** Whether a report may differ from an earlier one; cheaper than to make it. What only a leader reports may. */
export function mayHaveChanged(replica: ReportedReplica, told: RangeReport, silent: boolean): boolean {
  const { group, state } = replica;
  return (
    replica.leading ||
    told.lead !== undefined ||
    told.replicaId !== group.replicaId ||
    told.epoch !== state.descriptor.epoch ||
    told.term !== group.term ||
    told.applied !== state.applied.index ||
    told.bytes !== state.bytes ||
    told.silent !== silent
  );
}

/** Whether the report stays as it is until something happens to the range: no rate falls, and no silence grows. */
export function isAtRest({ silent, lead }: RangeReport): boolean {
  if (silent || lead === undefined) return !silent;
  const { readsPerS, readBytesPerS, writesPerS, writeBytesPerS, peers } = lead;
  if (readsPerS + readBytesPerS + writesPerS + writeBytesPerS > 0) return false;
  return peers.every(({ silentMs }) => silentMs === 0);
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
    ...quiet(load.rates()),
    peers: progress.map((peer) => peerReport(peer, liveness.silentMs(peer, nowMs))),
    sizeRemark: splitReasons.remark,
  };
}

/** Rates approach 0 without end: from here on they count as 0, so that the report stays the same. */
const QUIET_PER_S = 0.01;

function quiet(rates: Rates): Rates {
  const { readsPerS, readBytesPerS, writesPerS, writeBytesPerS } = rates;
  if (Math.max(readsPerS, readBytesPerS, writesPerS, writeBytesPerS) === 0) return rates;
  const shown = (perS: number): number => (perS < QUIET_PER_S ? 0 : perS);
  return {
    readsPerS: shown(readsPerS),
    readBytesPerS: shown(readBytesPerS),
    writesPerS: shown(writesPerS),
    writeBytesPerS: shown(writeBytesPerS),
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
