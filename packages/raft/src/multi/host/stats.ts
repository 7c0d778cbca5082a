/** Counters of one host since its start, for metrics. */
export interface HostStats {
  turns: number;
  ticks: number;
  /** Times that ticks were made; an idle node makes several at once. */
  wakeUps: number;
  /** Times the event loop stalled for longer than could be made up for. */
  stalls: number;
  framesSent: number;
  messagesSent: number;
  messagesReceived: number;
  /** Merged heartbeats, each for many groups, and the replies to them. */
  heartbeatsSent: number;
  /** Groups named by heartbeats sent, over all of them. */
  heartbeatGroupsSent: number;
  heartbeatsReceived: number;
  heartbeatRepliesSent: number;
  heartbeatRepliesReceived: number;
  /** Groups for which a peer's heartbeat was refused here. */
  heartbeatsRefused: number;
  /** Messages for groups or replicas that do not exist here. */
  messagesUnknown: number;
  /** Messages whose sender's replica lives on another node. */
  messagesMisplaced: number;
  /** Replicas that learned of another leader of their group, themselves included. */
  leaderChanges: number;
  appends: number;
  /** Turns of a group whose entries did not go to all of its followers at once. */
  appendsDelayed: number;
  entriesProposed: number;
  entriesApplied: number;
  /** The current memory of entries, of all groups. */
  entryCacheBytes: number;
  /** Reads of entries that were no longer in memory, and the number of entries read. */
  entryReads: number;
  entriesReadBack: number;
  /** Proposals refused and appends of other leaders dropped because too much waited to be written to the log. */
  logFull: number;
  readsStarted: number;
  /** Reads served under a lease. */
  readsLeased: number;
  compactions: number;
  snapshotsSent: number;
  snapshotsSendFailed: number;
  snapshotsReceived: number;
  snapshotsReceiveFailed: number;
  /** Streams that continued an outgoing snapshot after a break. */
  snapshotsResumed: number;
  /** Times that a receiver had no place and must be asked again. */
  snapshotsPutOff: number;
  /** Bytes of snapshots sent; repetitions after a break count once. */
  snapshotBytesSent: number;
  /** Bytes of snapshots stored. */
  snapshotBytesReceived: number;
}

/** Work that a host has begun and not ended. Every count is 0 on a node at rest; otherwise something leaked. */
export interface HostInFlight {
  /** ReadIndex calls that are not answered. */
  readonly reads: number;
  /** Snapshots that followers need, that are being sent, or that wait for a place at their receiver. */
  readonly snapshotsOut: number;
  /** Logs that are kept for a snapshot in progress. */
  readonly logHolds: number;
  /** Places taken by incoming snapshots. */
  readonly snapshotsIn: number;
  /** Groups that accept nothing else until their snapshot has ended. */
  readonly receiving: number;
  /** Callers that wait for the log to be durable. */
  readonly durableWaits: number;
}

export function newStats(): HostStats {
  return {
    turns: 0,
    ticks: 0,
    wakeUps: 0,
    stalls: 0,
    framesSent: 0,
    messagesSent: 0,
    messagesReceived: 0,
    heartbeatsSent: 0,
    heartbeatGroupsSent: 0,
    heartbeatsReceived: 0,
    heartbeatRepliesSent: 0,
    heartbeatRepliesReceived: 0,
    heartbeatsRefused: 0,
    messagesUnknown: 0,
    messagesMisplaced: 0,
    leaderChanges: 0,
    appends: 0,
    appendsDelayed: 0,
    entriesProposed: 0,
    entriesApplied: 0,
    entryCacheBytes: 0,
    entryReads: 0,
    entriesReadBack: 0,
    logFull: 0,
    readsStarted: 0,
    readsLeased: 0,
    compactions: 0,
    snapshotsSent: 0,
    snapshotsSendFailed: 0,
    snapshotsReceived: 0,
    snapshotsReceiveFailed: 0,
    snapshotsResumed: 0,
    snapshotsPutOff: 0,
    snapshotBytesSent: 0,
    snapshotBytesReceived: 0,
  };
}
