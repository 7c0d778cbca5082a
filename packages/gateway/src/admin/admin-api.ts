import type { KnownAuth } from '@remora/auth';
import { ServiceError, toServiceError } from '@remora/base';
import {
  type AuditReply,
  type CheckReport,
  type Command,
  type CommandResult,
  masterCheck,
  masterFinalizeUpgrade,
  masterHotRanges,
  masterNodes,
  masterNoteRestore,
  masterRanges,
  masterSetSetting,
  masterSettings,
  masterUpgradeStatus,
  nodeAudit,
  nodeLogLevel,
  type Query,
  type QueryResult,
  type RangesOverview,
  REVISION_FLOOR_MAX,
} from '@remora/protocol';
import type { admin } from '@remora/protocol/remora';
import type { Backend, BackendReply } from '../backend.ts';
import type { CallInfo, UnaryHandler } from '../calls.ts';
import { toCount } from '../lock/lock-requests.ts';
import {
  fromCheck,
  fromNodes,
  fromRange,
  fromSettings,
  fromUpgrade,
  toHotRangesRequest,
  toId,
  toRangesRequest,
  toVersion,
} from './admin-messages.ts';
import { ClusterCalls, type ClusterCallsDeps } from './cluster-calls.ts';
import { HistoryApi } from './history-api.ts';
import { transferLeadership } from './leader-transfer.ts';
import { RecoveryApi, type RecoveryApiDeps } from './recovery/recovery-api.ts';
import { SteeringApi } from './steering-api.ts';

export interface AdminApiDeps extends ClusterCallsDeps, RecoveryApiDeps {
  readonly backend: Backend;
  readonly health: HealthKnowledge;
  /** What this node knows of users and roles. */
  readonly known: Pick<KnownAuth, 'image'>;
}

/** What this node knows about the health of the cluster. */
interface HealthKnowledge {
  /** Completes the masters' report with what this node knows better. */
  completed(report: CheckReport): CheckReport;
  /** Returns what is known while no leader of the masters answers; undefined if one does. */
  withoutMasters(): CheckReport | undefined;
}

/**
 * How long to wait for the masters: longer than an election takes; `CHECK_AGAIN_MS` if they have had no leader for
 * longer.
 */
const CHECK_MS = 3_000;
const CHECK_AGAIN_MS = 500;

/** The calls of `remora.v1.Admin`. Any gateway takes them; the master's leader and the ranges' leaders answer. */
export class AdminApi {
  readonly #deps: AdminApiDeps;
  readonly #calls: ClusterCalls;
  readonly steering: SteeringApi;
  readonly recovery: RecoveryApi;
  readonly history: HistoryApi;

  constructor(deps: AdminApiDeps) {
    this.#deps = deps;
    this.#calls = new ClusterCalls(deps);
    this.steering = new SteeringApi(this.#calls);
    this.recovery = new RecoveryApi(this.#calls, deps);
    this.history = new HistoryApi(this.#calls);
  }

  async listNodes(_request: admin.ListNodesRequest, call: CallInfo): Promise<admin.ListNodesResponse> {
    return fromNodes(await this.#calls.master(masterNodes, undefined, call.timeoutMs));
  }

  async listRanges(request: admin.ListRangesRequest, call: CallInfo): Promise<admin.ListRangesResponse> {
    return this.#withStates(await this.#calls.master(masterRanges, toRangesRequest(request), call.timeoutMs));
  }

  async listHotRanges(request: admin.ListHotRangesRequest, call: CallInfo): Promise<admin.ListRangesResponse> {
    return this.#withStates(await this.#calls.master(masterHotRanges, toHotRangesRequest(request), call.timeoutMs));
  }

  /** Adds the present status of each range from its leader. */
  async #withStates(page: RangesOverview): Promise<admin.ListRangesResponse> {
    const ranges = page.ranges.map(async (range) =>
      fromRange(range, await this.#calls.status(range.leaderNode, range.descriptor.rangeId)),
    );
    return { ranges: await Promise.all(ranges), more: page.more };
  }

  async checkCluster(_request: admin.CheckClusterRequest, call: CallInfo): Promise<admin.CheckClusterResponse> {
    const { health } = this.#deps;
    let report: CheckReport | undefined;
    try {
      const patienceMs = health.withoutMasters() === undefined ? CHECK_MS : CHECK_AGAIN_MS;
      const timeoutMs = Math.min(call.timeoutMs, patienceMs);
      report = health.completed(await this.#calls.master(masterCheck, undefined, timeoutMs));
    } catch (error) {
      report = health.withoutMasters();
      if (report === undefined) throw error;
    }
    return fromCheck(report, this.#deps.known.image);
  }

  async listSettings(_request: admin.ListSettingsRequest, call: CallInfo): Promise<admin.ListSettingsResponse> {
    return fromSettings(await this.#calls.master(masterSettings, undefined, call.timeoutMs));
  }

  /** Setting a value twice has the effect of setting it once. */
  async setSetting(request: admin.SetSettingRequest, call: CallInfo): Promise<admin.ListSettingsResponse> {
    const { name, value } = request;
    return fromSettings(await this.#calls.change(masterSetSetting, { name, value }, call.timeoutMs));
  }

  async getUpgrade(_request: admin.GetUpgradeRequest, call: CallInfo): Promise<admin.UpgradeStatus> {
    return fromUpgrade(await this.#calls.master(masterUpgradeStatus, undefined, call.timeoutMs));
  }

  /** To finalize a version twice has the effect of finalizing it once. */
  async finalizeUpgrade(request: admin.FinalizeUpgradeRequest, call: CallInfo): Promise<admin.UpgradeStatus> {
    const version = toVersion(request.version);
    return fromUpgrade(await this.#calls.change(masterFinalizeUpgrade, { version }, call.timeoutMs));
  }

  async transferLeader(request: admin.TransferLeaderRequest, call: CallInfo): Promise<admin.TransferLeaderResponse> {
    const rangeId = toId(request.rangeId, 'range_id');
    const toNode = toId(request.toNode, 'to_node');
    const range = await this.#calls.range(rangeId, call.timeoutMs);
    const transfer = { range, toNode, timeoutMs: call.timeoutMs };
    return { fromNode: await transferLeadership({ calls: this.#calls, clock: this.#deps.clock }, transfer) };
  }

  async compact(request: admin.CompactRequest, call: CallInfo): Promise<admin.CompactResponse> {
    const wanted = toCount(request.revision, 'revision');
    const revision = wanted === 0 ? (await this.#query({ type: 'status' }, call)).revision : wanted;
    await this.#command({ type: 'compact', revision }, call);
    return { revision };
  }

  async setLogLevel({ nodeId, level }: admin.SetLogLevelRequest, call: CallInfo): Promise<admin.SetLogLevelResponse> {
    return this.#calls.node(toId(nodeId, 'node_id'), nodeLogLevel, { level }, call.timeoutMs);
  }

  /** The newest audit records of a node below the number `before`; 0: the newest of all. */
  audit(
    { node, before, limit }: { readonly node: number; readonly before: number; readonly limit: number },
    call: CallInfo,
  ): Promise<AuditReply> {
    return this.#calls.node(node, nodeAudit, { before, limit }, call.timeoutMs);
  }

  /**
   * Refused unless one range has all plain keys: otherwise other ranges would have to be raised as well, and writes
   * between the steps could not be detected.
   */
  async beginRestore(request: admin.BeginRestoreRequest, call: CallInfo): Promise<admin.BeginRestoreResponse> {
    const to = toCount(request.revision, 'revision');
    if (to > REVISION_FLOOR_MAX) {
      throw new ServiceError('INVALID_ARGUMENT', `the revision ${to} is too high; at most ${REVISION_FLOOR_MAX}`);
    }
    const { ranges } = this.#deps.backend.view();
    if (ranges.length > 1) {
      const message = `a backup can only be restored into a cluster with one range; this cluster has ${ranges.length}`;
      throw new ServiceError('INVALID_ARGUMENT', message);
    }
    const { revision } = await this.#command({ type: 'raiseRevision', to }, call);
    await this.#calls.change(masterNoteRestore, { isUnderWay: true }, call.timeoutMs);
    return { revision };
  }

  async endRestore(_request: admin.EndRestoreRequest, call: CallInfo): Promise<admin.EndRestoreResponse> {
    await this.#calls.change(masterNoteRestore, { isUnderWay: false }, call.timeoutMs);
    return {};
  }

  #command(command: Command, { timeoutMs, principal }: CallInfo): Promise<BackendReply<CommandResult>> {
    return new Promise((resolve, reject) => {
      this.#deps.backend.command(command, { timeoutMs, principal }, (error, reply) =>
        reply === undefined ? reject(toServiceError(error)) : resolve(reply),
      );
    });
  }

  #query(query: Query, { timeoutMs, principal }: CallInfo): Promise<BackendReply<QueryResult>> {
    return new Promise((resolve, reject) => {
      this.#deps.backend.query(query, { timeoutMs, principal }, (error, reply) =>
        reply === undefined ? reject(toServiceError(error)) : resolve(reply),
      );
    });
  }
}

/** Adapts a call with a promise, which rare calls may use. After a cancel it runs on until its time-out. */
export function asUnary<Request, Response>(
  work: (request: Request, call: CallInfo) => Promise<Response>,
): UnaryHandler<Request, Response> {
  return (request, call, done) => {
    work(request, call).then(
      (response) => done(undefined, response),
      (error: unknown) => done(toServiceError(error), undefined),
    );
    return undefined;
  };
}
