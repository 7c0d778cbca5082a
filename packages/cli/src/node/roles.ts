import type { Clock, ClusterVersion, Engine, Logger, Random, SpokenVersions } from '@remora/base';
import {
  Checkpointer,
  DiskRoom,
  masterStateKey,
  type OtherRanges,
  RangeMetrics,
  RangeTimes,
  RevisionDrawer,
  type SplittingPorts,
  Store,
  type TransactionPeers,
} from '@remora/dataserver';
import { type FoundingPlan, Master, type MasterFinder, splitPolicyOf } from '@remora/master';
import {
  masterAskSplit,
  masterDrawRevisions,
  type RangeDescriptor,
  type RpcDialer,
  type RpcRegistry,
} from '@remora/protocol';
import {
  type ConfState,
  type Group,
  type GroupId,
  MASTER_GROUP,
  NO_REPLICA,
  type NodeRaftHost,
  type RecoveredGroup,
} from '@remora/raft';
import type { NodeOptions } from '../node-options.ts';
import { type Founders, shownClusterId } from './cluster/cluster-identity.ts';
import { firstBorders } from './cluster/first-borders.ts';
import { MasterReplica } from './master-replica.ts';
import type { NodePlatform } from './platform.ts';

/** The foundation of the roles with replicated state. */
export interface StateDeps {
  readonly host: NodeRaftHost;
  readonly engine: Engine;
  readonly checkpointer: Checkpointer;
  /** The log's contents when the node started; each replica takes its own part out. */
  readonly recovered: Map<GroupId, RecoveredGroup>;
}

interface RoleDeps extends StateDeps {
  readonly options: NodeOptions;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly nodeId: number;
}

export interface StoreParts {
  readonly platform: NodePlatform;
  readonly drawer: RevisionDrawer;
  readonly dialer: RpcDialer;
  readonly splitting: SplittingPorts;
  readonly others: OtherRanges;
  readonly transactionPeers: TransactionPeers;
  readonly knownRanges: () => readonly RangeDescriptor[];
  readonly authRevision: () => number;
  readonly versions: SpokenVersions;
  readonly onFailure: (error: unknown) => void;
}

export interface MasterReplicaParts {
  readonly platform: NodePlatform;
  readonly founders: Founders | undefined;
  readonly founding: FoundingPlan | undefined;
  readonly clusterId: string;
  readonly registry: RpcRegistry;
  readonly onVersion: (version: ClusterVersion) => void;
  readonly onFailure: (error: unknown) => void;
}

/** Replicas of a range; fewer only in a cluster that was founded with fewer nodes. */
const REPLICAS = 3;
/**
 * Revisions that the master's leader reserves at a time: one log entry for this many changes of all ranges together.
 */
const REVISION_WINDOW = 100_000;
/** Writes of many ranges wait for one draw: a master that does not answer must be given up soon. */
const DRAW_TIMEOUT_MS = 300;
/** Only the split waits for it, and a split is retried. */
const ASK_SPLIT_TIMEOUT_MS = 3_000;
/**
 * Memory for recent events, of one range and of all together; the objects around them take about half as much again.
 */
const WATCH_RING_BYTES = 8 * 1024 * 1024;
const WATCH_RINGS_BYTES = 24 * 1024 * 1024;
/** Memory for remembered outcomes, per range. */
const OUTCOME_BYTES = 256 * 1024 * 1024;
const TIME_CARRY_MS = 30_000;
/** How long a stopping node waits for others to take over its leaderships. */
const HAND_OVER_MS = 1_000;

/**
 * Creates this node's replica of the masters' group, and starts it if the node has one. Replica ids of that group are
 * node ids.
 */
export function createMasterReplica(deps: RoleDeps & MasterReplicaParts): MasterReplica {
  const { engine, checkpointer, founders, founding, clusterId, clock, logger, nodeId, platform } = deps;
  const replicas = Math.min(REPLICAS, founders?.names.length ?? REPLICAS);
  const createMaster = (conf: ConfState, onLeft: () => void): Master =>
    new Master(
      {
        ...{ nodeId, clusterId, clock, logger, onLeft, founding, onVersion: deps.onVersion },
        shownClusterId: shownClusterId(clusterId),
        founderNames: founders?.names ?? [],
        options: {
          replicas,
          borders: firstBorders(deps.options),
          ranges: deps.options,
          revisionWindow: REVISION_WINDOW,
          ...platform.tuning?.master,
        },
        storage: {
          load: () => engine.get(masterStateKey(MASTER_GROUP)),
          save: (bytes) => engine.put(masterStateKey(MASTER_GROUP), bytes),
        },
        checkpoint: () => checkpointer.run(),
      },
      conf,
    );
  const seat = new MasterReplica({
    ...deps,
    mayServe: deps.options.roles.includes('master'),
    founders: founders?.names.map((_name, i) => i + 1),
    createMaster,
  });
  seat.start();
  return seat;
}

/** Writes applied changes to the engine's disk, as often as the options say. */
export function createCheckpointer(
  engine: Engine,
  parts: { readonly clock: Clock; readonly logger: Logger; readonly options: NodeOptions },
): Checkpointer {
  const { clock, logger, options } = parts;
  const { checkpointInterval: intervalMs, checkpointBytes: bytes } = options;
  return new Checkpointer(engine, { clock, logger, options: { intervalMs, bytes } });
}

/** Draws revisions for the ranges of this node, once the master numbers any. */
export function createDrawer(
  finder: MasterFinder,
  ports: { readonly clock: Clock; readonly random: Random; readonly logger: Logger },
): RevisionDrawer {
  return new RevisionDrawer({
    ...ports,
    call: (request, done) => finder.call(masterDrawRevisions, request, { timeoutMs: DRAW_TIMEOUT_MS }, done),
  });
}

/** Returns what splits of this node's ranges need: ids from the master. */
export function splittingPorts(finder: MasterFinder): SplittingPorts {
  return {
    askIds: (request) =>
      new Promise((resolve, reject) => {
        finder.call(masterAskSplit, request, { timeoutMs: ASK_SPLIT_TIMEOUT_MS }, (error, ids) => {
          if (ids === undefined) reject(error);
          else resolve(ids);
        });
      }),
  };
}

/**
 * Creates the ranges of this node: they run at once, or after the snapshot that the last stop interrupted is installed.
 * If that fails, `onFailure` is called: the node must stop.
 */
export function createStore(deps: RoleDeps & StoreParts): Store {
  const { onApplied, metrics } = deps.platform;
  const store = new Store({
    ...deps,
    ...(onApplied === undefined ? {} : { onApplied }),
    ...(metrics === undefined
      ? {}
      : {
          meter: new RangeMetrics(metrics),
          times: new RangeTimes({ metrics, clock: deps.clock, logger: deps.logger, slowMs: deps.options.slowRequest }),
        }),
    disk: deps.platform.stagingDisk,
    room: new DiskRoom({
      clock: deps.clock,
      nodeId: deps.nodeId,
      space: () => deps.platform.space(),
      reserveBytes: deps.options.diskReserve,
    }),
    options: {
      watchRingBytesMax: WATCH_RING_BYTES,
      watchRingsBytesMax: WATCH_RINGS_BYTES,
      outcomeBytesMax: OUTCOME_BYTES,
      timeCarryMs: TIME_CARRY_MS,
      compactionRetentionMs: deps.options.compactionRetention,
      splits: splitPolicyOf(deps.options),
      lockLimits: {
        sessionsMax: deps.options.sessionsMax,
        sessionLocksMax: deps.options.sessionLocksMax,
        waitersMax: deps.options.lockWaitersMax,
        dataBytesMax: deps.options.lockDataBytesMax,
      },
      ...deps.platform.tuning?.ranges,
    },
  });
  store.start().catch(deps.onFailure);
  return store;
}

/** Transfers leaderships before the node stops, so that writers need not wait for an election. */
export async function handOver(groups: readonly Group[], clock: Clock): Promise<void> {
  const led = groups.filter((group) => group.role === 'leader');
  for (const group of led) {
    const { progress } = group.status();
    const best = [...progress].filter((p) => p.heardLately).sort((a, b) => b.match - a.match)[0];
    if (best !== undefined) group.transferLeader(best.replica);
  }
  const endMs = clock.monotonicMs() + HAND_OVER_MS;
  // Until other leaders are heard, this node's votes and acknowledgements help to elect them.
  const goesOn = (group: Group): boolean =>
    group.role === 'leader' ? group.status().progress.some((p) => p.heardLately) : group.leader === NO_REPLICA;
  while (led.some(goesOn) && clock.monotonicMs() < endMs) {
    await new Promise<void>((resolve) => clock.setTimer(10, resolve));
  }
}
