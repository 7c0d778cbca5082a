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

export function isSameReport(a: RangeReport, b: RangeReport): boolean {
  return (
    a.replicaId === b.replicaId &&
    a.epoch.confVersion === b.epoch.confVersion &&
    a.epoch.version === b.epoch.version &&
    a.term === b.term &&
    a.applied === b.applied &&
    a.bytes === b.bytes &&
    a.silent === b.silent &&
    isSameLead(a.lead, b.lead)
  );
}

function isSameLead(a: LeaderReport | undefined, b: LeaderReport | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return (
    a.keys === b.keys &&
    a.logEntries === b.logEntries &&
    a.joint === b.joint &&
    a.changePending === b.changePending &&
    a.readsPerS === b.readsPerS &&
    a.readBytesPerS === b.readBytesPerS &&
    a.writesPerS === b.writesPerS &&
    a.writeBytesPerS === b.writeBytesPerS &&
    a.sizeRemark === b.sizeRemark &&
    a.peers.length === b.peers.length &&
    a.peers.every((peer, i) => isSamePeer(peer, b.peers[i]))
  );
}

function isSamePeer(a: PeerReport, b: PeerReport | undefined): boolean {
  return (
    b !== undefined &&
    a.replicaId === b.replicaId &&
    a.state === b.state &&
    a.match === b.match &&
    a.lagEntries === b.lagEntries &&
    a.lagBytes === b.lagBytes &&
    a.caughtUp === b.caughtUp &&
    a.silentMs === b.silentMs
  );
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
