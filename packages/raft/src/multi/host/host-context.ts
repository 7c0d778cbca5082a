/** Shared by the groups of a node. */
import type { Clock, Logger, Random } from '@remora/base';
import type { RaftConfig } from '../../core/config.ts';
import type { TraceEvent } from '../../core/trace.ts';
import type { ReplicaId, TickTime } from '../../core/types.ts';
import type { GroupId, GroupLog, NodeId } from '../ports.ts';
import type { LeaseClock } from './clock/lease-clock.ts';
import type { EntryCache } from './entries/entry-cache.ts';
import type { EntryReader } from './entries/entry-reader.ts';
import type { GroupHandle } from './group/group-handle.ts';
import type { Heartbeats } from './heartbeats/heartbeats.ts';
import { type HostOptions, leaseLengthOf } from './options.ts';
import type { HostStats } from './stats.ts';

/** The host, as a group uses it. */
export interface HostContext {
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly log: GroupLog;
  readonly options: HostOptions;
  readonly stats: HostStats;
  readonly entryCache: EntryCache;
  readonly entryReader: EntryReader;
  readonly heartbeats: Heartbeats;
  readonly leaseClock: LeaseClock;
  /** The tick time of all groups. */
  readonly time: TickTime;
  /** Whether one more group may campaign now. */
  admitsCampaign(group: GroupHandle): boolean;
  /** The group has something for the next turn. */
  markDirty(group: GroupHandle): void;
  /** Entries of the group are held back from some of its followers (core/thrifty-replication.ts). */
  appendsWait(group: GroupHandle): void;
  /** The next due tick of the group may be earlier now. */
  schedule(group: GroupHandle): void;
  wantSnapshot(group: GroupHandle, to: ReplicaId): void;
  /** A replica that is not a member of the group asks for votes. */
  stranger(group: GroupHandle, stranger: { readonly replicaId: ReplicaId; readonly node: NodeId }): void;
  readonly trace: ((groupId: GroupId, event: TraceEvent) => void) | undefined;
  fail(error: unknown): void;
}

/** Returns the configuration of a group's core. */
export function coreConfig(host: HostContext, group: GroupHandle): RaftConfig {
  const { options, random, trace, time } = host;
  return {
    id: group.replicaId,
    electionTicks: options.electionTicks,
    electionSpreadTicks: Math.ceil((options.electionTicks * options.electionSpreadPercent) / 100),
    heartbeatTicks: options.heartbeatTicks,
    preVote: options.preVote,
    checkQuorum: options.checkQuorum,
    ...(options.leaseReads && { leaseMs: leaseLengthOf(options) }),
    maxEntryBytesPerMessage: options.maxEntryBytesPerMessage,
    maxInflightMessages: options.maxInflightMessages,
    maxInflightBytes: options.maxInflightBytes,
    entriesMayWait: options.appendReviewMs > 0,
    maxUncommittedBytes: options.maxUncommittedBytes,
    maxApplyingBytes: options.maxApplyingBytes,
    caughtUpEntries: options.caughtUpEntries,
    caughtUpPercent: options.caughtUpPercent,
    random,
    time,
    admitsCampaign: () => host.admitsCampaign(group),
    ...(trace !== undefined && { trace: (event) => trace(group.groupId, event) }),
  };
}
