import { assert, CLOCK_DIFFERENCE_PERCENT } from '@remora/base';
import { leaseLengthMs } from '../../core/lease.ts';

/** How a node runs its Raft groups. Frozen at start; the same on every node of a cluster unless said otherwise. */
export interface HostOptions {
  /** Length of one Raft tick, in milliseconds: one timer per node ticks all its groups. */
  readonly tickMs: number;
  /** A follower that hears nothing for this long campaigns, after a further random wait. */
  readonly electionTicks: number;
  /** The longest that this further wait may be, in percent of `electionTicks` (`RaftConfig.electionSpreadTicks`). */
  readonly electionSpreadPercent: number;
  /** Interval of a leader's heartbeats; well below `electionTicks`. */
  readonly heartbeatTicks: number;
  /**
   * Ticks that are made up for after a stall of the event loop. More are dropped: a stalled node knows nothing of that
   * time.
   */
  readonly catchUpTicksMax: number;
  /**
   * A replica that hears no leader for this long is reported (`RaftHostOptions.onSilence`), again after each such time.
   */
  readonly silenceTicks: number;
  /**
   * If nothing becomes durable in the log for this long, the log hangs: the groups that this node leads are handed
   * over.
   */
  readonly logStallTicks: number;
  /**
   * Groups of this node that campaign at a time; others wait. With more, elections would run into each other's
   * time-outs.
   */
  readonly campaignsMax: number;
  /** Ask before raising the term (dissertation §9.6). */
  readonly preVote: boolean;
  /** A leader that hears no quorum for an election timeout steps down. */
  readonly checkQuorum: boolean;
  /**
   * Serve `leaseRead` under a leader's lease, without a round of messages. Safe only while the clocks of any two nodes
   * run at rates that differ by less than `leaseDriftPercent`, and while all nodes have the same `tickMs`,
   * `electionTicks` and `catchUpTicksMax`; therefore off by default. Needs `checkQuorum`.
   */
  readonly leaseReads: boolean;
  /** By how much the rates of two nodes' clocks may differ, in percent: twice what one of them may be off. */
  readonly leaseDriftPercent: number;
  /** Bytes of entries in one append message. */
  readonly maxEntryBytesPerMessage: number;
  /** Append messages in flight to one follower. */
  readonly maxInflightMessages: number;
  /** Bytes of entries in flight to one follower. */
  readonly maxInflightBytes: number;
  /**
   * Interval in milliseconds at which the host reconsiders entries that are held back from followers whose
   * acknowledgement is not awaited (core/thrifty-replication.ts T3). 0: entries go to all followers at once.
   */
  readonly appendReviewMs: number;
  /** Proposed and not yet committed bytes of a group; above it proposals are refused with `queueFull`. */
  readonly maxUncommittedBytes: number;
  /** Committed and not yet applied bytes that a group keeps in memory for its state machine. */
  readonly maxApplyingBytes: number;
  /**
   * Memory for entries of all groups of the node. The oldest leave it first; they are read back from the log if a
   * follower lags that far, or if many entries are applied late. Only entries that are not durable yet may exceed it.
   */
  readonly entryCacheBytes: number;
  /** Concurrent reads of such entries; others wait for their turn. */
  readonly entryReadsMax: number;
  /** ReadIndex calls of one group that are not answered yet; above it they are refused with `queueFull`. */
  readonly pendingReadsMax: number;
  /** Entries given to one call of `StateMachine.apply`, after which a turn examines its time budget. */
  readonly applySliceEntries: number;
  /** A call takes no further entry once it has this many bytes of them. */
  readonly applySliceBytes: number;
  /** Time in milliseconds after which a loop turn lets other work run and continues in the next one. */
  readonly turnBudgetMs: number;
  /** Entries kept behind a checkpoint for followers that lag; followers further behind need a snapshot. */
  readonly tailEntries: number;
  /** Bytes kept behind a checkpoint, whichever of the two limits is reached first. */
  readonly tailBytes: number;
  /** A follower that lags less than this many entries counts as caught up: a learner may be promoted. */
  readonly caughtUpEntries: number;
  /** So does one that lags less than this share of the log since the snapshot, in percent. */
  readonly caughtUpPercent: number;
  /** Snapshots that this node sends at a time. */
  readonly snapshotSendsMax: number;
  /** Snapshots that this node receives at a time; further offers are refused and repeated. */
  readonly snapshotReceivesMax: number;
  /** Bytes of snapshots that this node sends per second, all together; 0 for no limit, otherwise at least 1 MiB. */
  readonly snapshotBytesPerSecondMax: number;
  /**
   * The same while the node has other work (snapshots/work-meter.ts); it then also limits what the node receives.
   * Copied data causes garbage collection, which would slow the slowest hundredth of other requests.
   */
  readonly snapshotBytesPerSecondBusy: number;
  /** Longest wait for the next chunk of a snapshot, and for the state machine to produce or store one. */
  readonly snapshotIdleTimeoutMs: number;
  /** An installation in which the state machine shows no progress for this long fails towards the sender. */
  readonly snapshotInstallTimeoutMs: number;
  /** Longest time from taking a snapshot to its installation: the log behind it is kept that long. */
  readonly snapshotSendTimeoutMs: number;
  /** Pause after a snapshot could not be sent. */
  readonly snapshotRetryMs: number;
  /** Interval of the log lines with the progress of a long transfer. */
  readonly snapshotLogMs: number;
  /** How long after a snapshot the log behind it is kept, so that its receiver can catch up from there. */
  readonly snapshotHoldMs: number;
}

export const HOST_DEFAULTS: HostOptions = Object.freeze({
  tickMs: 25,
  electionTicks: 18,
  electionSpreadPercent: 100,
  heartbeatTicks: 4,
  catchUpTicksMax: 4,
  silenceTicks: 1200,
  logStallTicks: 200,
  campaignsMax: 256,
  preVote: true,
  checkQuorum: true,
  leaseReads: false,
  leaseDriftPercent: CLOCK_DIFFERENCE_PERCENT,
  maxEntryBytesPerMessage: 1024 * 1024,
  maxInflightMessages: 256,
  maxInflightBytes: 16 * 1024 * 1024,
  appendReviewMs: 2,
  maxUncommittedBytes: 64 * 1024 * 1024,
  maxApplyingBytes: 16 * 1024 * 1024,
  entryCacheBytes: 16 * 1024 * 1024,
  entryReadsMax: 4,
  pendingReadsMax: 100_000,
  applySliceEntries: 4,
  applySliceBytes: 32 * 1024,
  turnBudgetMs: 10,
  tailEntries: 10_000,
  tailBytes: 8 * 1024 * 1024,
  caughtUpEntries: 500,
  caughtUpPercent: 5,
  snapshotSendsMax: 3,
  snapshotReceivesMax: 3,
  snapshotBytesPerSecondMax: 32 * 1024 * 1024,
  snapshotBytesPerSecondBusy: 4 * 1024 * 1024,
  snapshotIdleTimeoutMs: 30_000,
  snapshotInstallTimeoutMs: 300_000,
  snapshotSendTimeoutMs: 3_600_000,
  snapshotRetryMs: 500,
  snapshotLogMs: 10_000,
  snapshotHoldMs: 30_000,
});

/** How long a leader's lease counts from the send time of its heartbeats, in milliseconds (core/lease.ts E3). */
export function leaseLengthOf(options: HostOptions): number {
  const { electionTicks, tickMs, catchUpTicksMax, leaseDriftPercent } = options;
  return leaseLengthMs({ electionTicks, tickMs, aheadTicksMax: catchUpTicksMax, driftPercent: leaseDriftPercent });
}

/** Fills in the defaults and checks ranges and relations. Throws `InvariantError` for options that cannot work. */
export function hostOptions(given: Partial<HostOptions> = {}): HostOptions {
  const options: HostOptions = { ...HOST_DEFAULTS, ...given };
  const mayBeZero = new Set<string>([
    'appendReviewMs',
    'caughtUpEntries',
    'caughtUpPercent',
    'snapshotBytesPerSecondMax',
    'snapshotBytesPerSecondBusy',
    'tailEntries',
    'tailBytes',
    'snapshotRetryMs',
    'snapshotHoldMs',
  ]);
  for (const [name, value] of Object.entries(options)) {
    if (typeof value !== 'number') continue;
    const least = mayBeZero.has(name) ? 0 : 1;
    assert(
      Number.isFinite(value) && value >= least,
      `raft host option ${name} must be at least ${least}, not ${value}`,
    );
  }
  for (const name of ['snapshotBytesPerSecondMax', 'snapshotBytesPerSecondBusy'] as const) {
    assert(
      options[name] === 0 || options[name] >= 1024 * 1024,
      `${name} must be 0 or at least 1 MiB: at lower rates, receivers time out waiting for chunks`,
    );
  }
  assert(options.electionTicks > options.heartbeatTicks, 'electionTicks must be above heartbeatTicks');
  assert(options.silenceTicks > options.electionTicks, 'silenceTicks must be above electionTicks');
  assert(
    options.heartbeatTicks - 1 + options.catchUpTicksMax < options.electionTicks,
    'heartbeatTicks and catchUpTicksMax together must be at most electionTicks: a stall alone must not start a campaign',
  );
  assert(
    !options.leaseReads || options.checkQuorum,
    'leaseReads needs checkQuorum: without it, followers vote for others while their leader is alive',
  );
  assert(
    !options.leaseReads || leaseLengthOf(options) > options.heartbeatTicks * options.tickMs,
    'leaseReads needs a lease longer than the heartbeat interval: raise electionTicks or lower catchUpTicksMax',
  );
  return Object.freeze(options);
}
