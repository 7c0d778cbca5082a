/**
 * Builds the parts of a replica, each from parts that were built before it. Only two ties go the other way: the state
 * is built with its effects, which get their parts last (`RangeEffects.attach`), and the Raft group is attached when
 * the replica runs (`LocalReplica.attach`).
 *
 * A node has thousands of replicas, so their parts take little memory while nothing happens. An object literal with a
 * spread gets a hidden class of its own in V8, which takes more memory than the object: the parts that stay have none.
 */
import { BUILD_VERSIONS, type ClusterVersion, FIRST_VERSION, type SpokenVersions } from '@remora/base';
import { grantNews } from '@remora/lock';
import type { RangeDescriptor } from '@remora/protocol';
import type { ConfState } from '@remora/raft';
import { LockListeners } from '../lock-watch/lock-listeners.ts';
import { SplitReasons } from '../splitting/split-reasons.ts';
import type { RangeStart } from '../state/effects.ts';
import { lockReader } from '../state/locks/engine-lock-view.ts';
import { RangeState } from '../state/range-state.ts';
import { IntentWaitQueue } from '../transactions/intent-wait-queue.ts';
import { TransactionService } from '../transactions/transaction-service.ts';
import { WatchHub } from '../watch/watch-hub.ts';
import { LeaseManager } from './leases/lease-manager.ts';
import { LocalReplica } from './local-replica.ts';
import { GrantWatches } from './locks/grant-watches.ts';
import { LOCK_LIMITS, LockLimits } from './locks/lock-limits.ts';
import { LockWaits } from './locks/lock-waits.ts';
import { Leadership } from './membership/leadership.ts';
import { RangeMembers } from './membership/range-members.ts';
import { RangeClock } from './range-clock.ts';
import type { RangeDeps } from './range-deps.ts';
import { RangeEffects } from './range-effects.ts';
import { ReplicaRows } from './replica-rows.ts';
import { ClosedRevisions } from './requests/closed-revisions.ts';
import { CommandQueue } from './requests/command-queue.ts';
import { Commands } from './requests/commands.ts';
import { EntryApplier } from './requests/entry-applier.ts';
import { Proposals } from './requests/proposals.ts';
import { Queries } from './requests/queries.ts';
import { RangeRequests } from './requests/range-requests.ts';
import { RangeWatches } from './requests/range-watches.ts';
import { KeyChange } from './reshape/key-change.ts';
import { Merges } from './reshape/merges.ts';
import { SplitBackpressure } from './reshape/split-backpressure.ts';
import { SplitOffRanges } from './reshape/split-off-ranges.ts';
import { Splits } from './reshape/splits.ts';
import { RangeLoad } from './stats/range-load.ts';
import { StatsRecomputer } from './stats/stats-recomputer.ts';

export type ReplicaParts = ReturnType<typeof replicaParts>;

/** `start`: the initial state, if it comes from another range and the engine has none. */
export function replicaParts(deps: RangeDeps, descriptor: RangeDescriptor, conf: ConfState, start?: RangeStart) {
  const effects = new RangeEffects(deps);
  const state = new RangeState(deps.engine, { descriptor, conf, effects });
  if (start === undefined) state.load();
  else state.begin(start);
  const local = localParts(deps, state);
  const ways = logParts(deps, local);
  const served = servedParts(deps, { ...local, ...ways });
  const reshape = reshapeParts(deps, { ...local, ...ways, ...served });
  const { context, rows, lockListeners, waits, grants, intentWaitQueue, members, splitReasons } = local;
  const { proposals, queue, closing, leases, applier, transactions, statsRecomputer } = ways;
  const { hub, watches, queries } = served;
  const { merges, backpressure, splits, requests } = reshape;
  const parts = {
    context,
    rows,
    lockListeners,
    waits,
    grants,
    intentWaitQueue,
    members,
    splitReasons,
    proposals,
    queue,
    closing,
    leases,
    applier,
    transactions,
    statsRecomputer,
    hub,
    watches,
    queries,
    merges,
    backpressure,
    splits,
    requests,
  };
  effects.attach(parts);
  return parts;
}

/** The context, and parts that depend on nothing but the state. */
function localParts(deps: RangeDeps, state: RangeState) {
  const { clock, engine, logger, following, onSplitWish, onActive, splitPolicy, heat } = deps;
  const onBegin = (): void => onActive?.(state.rangeId);
  const rows = new ReplicaRows(deps, state);
  const load = new RangeLoad(
    clock,
    heat.ofRange(() => state.descriptor),
    onBegin,
  );
  const leadership = new Leadership(state);
  const splitOff = new SplitOffRanges({ state, following });
  const context = new LocalReplica({ state, leadership, time: new RangeClock(clock), load, rows, splitOff });
  return {
    context,
    rows,
    splitOff,
    lockListeners: new LockListeners({ engine, clock, revision: () => state.revision }),
    waits: new LockWaits(),
    grants: new GrantWatches((lock, question) =>
      grantNews({ ...lockReader(engine), timeMs: state.rangeTimeMs }, lock, question),
    ),
    intentWaitQueue: new IntentWaitQueue(),
    members: new RangeMembers(context, clock),
    splitReasons: new SplitReasons({
      engine,
      clock,
      logger,
      state,
      load,
      splitPolicy,
      onCandidate: () => onSplitWish?.(),
    }),
  };
}

type LocalParts = ReturnType<typeof localParts>;

/** For stores without a cluster version. */
const UNSAID: SpokenVersions = { builds: BUILD_VERSIONS };

/** The path of commands into the log, and the parts that propose commands. */
function logParts(deps: RangeDeps, { context, intentWaitQueue }: LocalParts) {
  const { clock, engine, drawer, logger, others, options, onApplied, transactionPeers, times } = deps;
  const { versions = UNSAID } = deps;
  const { state, time } = context;
  const rangeTimeMs = (): number => time.nowMs();
  const version = (): ClusterVersion => versions.inForce ?? FIRST_VERSION;
  const staleEpoch = () => context.staleEpoch();
  const proposals = new Proposals({ clock, drawer, state, version, rangeTimeMs, staleEpoch, times });
  const queue = new CommandQueue(context, { proposals, intentWaitQueue });
  const closing = new ClosedRevisions({
    state,
    prepared: { earliestCommit: () => state.transactions.earliestCommit() },
    source: drawer,
    group: () => context.group,
    whenSettled: (done) => proposals.whenSettled(done),
    notLeader: () => context.notLeader(),
    sealed: () => context.sealed,
  });
  const leases = new LeaseManager({
    clock,
    engine,
    state,
    others,
    commands: queue,
    rangeTimeMs,
    source: drawer,
    checkpointMs: options.leaseCheckpointMs,
    auditMs: options.leaseAuditMs,
    term: () => context.servingTerm,
  });
  return {
    proposals,
    queue,
    closing,
    leases,
    applier: new EntryApplier({ state, proposals, onApplied, readsUpTo: versions.builds.max }),
    transactions: new TransactionService(context, { clock, waits: intentWaitQueue, transactionPeers, commands: queue }),
    statsRecomputer: new StatsRecomputer({ engine, clock, logger, context, commands: queue }),
  };
}

type LogParts = LocalParts & ReturnType<typeof logParts>;

/** Commands, queries and watches of clients. */
function servedParts(deps: RangeDeps, parts: LogParts) {
  const { clock, engine, options, logger, nodeId, room, meter, watchRingShare } = deps;
  const { context, lockListeners, intentWaitQueue, proposals, queue, closing, leases, waits, grants } = parts;
  const { state } = context;
  const hub = new WatchHub(engine, state, {
    ringBytesMax: () => Math.min(options.watchRingBytesMax, watchRingShare()),
    clock,
    logger,
    closed: () => closing.closed,
    earliestCommit: () => state.transactions.earliestCommit(),
  });
  return {
    hub,
    watches: new RangeWatches(context, { hub, lockListeners }),
    commands: new Commands({
      context,
      proposals,
      queue,
      intentWaitQueue,
      leases,
      room,
      meter,
      limits: new LockLimits(options.lockLimits ?? LOCK_LIMITS, state, engine),
      outcomeBytesMax: options.outcomeBytesMax,
    }),
    queries: new Queries(context, {
      engine,
      clock,
      waits,
      grants,
      closing,
      intentWaitQueue,
      hub,
      nodeId,
      logger,
      keeper: leases.keeper,
    }),
  };
}

type ServedParts = LogParts & ReturnType<typeof servedParts>;

/** Splits and merges, and requests, which wait for them. */
function reshapeParts({ clock, onSplit, neighbours, authRevision }: RangeDeps, parts: ServedParts) {
  const { context, rows, splitReasons, splitOff, closing, leases, queue, queries, watches, hub, lockListeners } = parts;
  const keyChange = new KeyChange(context, { rows, splitReasons, closing, leases });
  const commands = queue;
  const merges = new Merges(context, {
    commands,
    queries,
    watches,
    lockListeners,
    keyChange,
    hub,
    closing,
    leases,
    neighbours,
  });
  const backpressure = new SplitBackpressure({ clock, pressure: () => splitReasons.pressure });
  return {
    merges,
    backpressure,
    splits: new Splits(context, { commands, queries, watches, lockListeners, keyChange, splitOff, onSplit }),
    requests: new RangeRequests({
      context,
      merges,
      commands: parts.commands,
      queries,
      closing,
      leases,
      splitReasons,
      backpressure,
      authRevision,
    }),
  };
}
