import { ServiceError } from '@remora/base';
import type { admin } from '@remora/protocol/remora';
import type { AdminApi } from '../../admin/admin-api.ts';
import type { Backend } from '../../backend.ts';
import type { CallInfo } from '../../calls.ts';
import type { ClusterJson, NodeJson } from '../json/cluster.ts';
import { healthJson, nodeJson } from './cluster-json.ts';

/** An overview waits for the masters no longer than an election takes. */
const MASTERS_MS = 3_000;

/**
 * The cluster at a glance. While the masters have no leader, the overview has what this node knows: the nodes of the
 * last view, in the state `unknown`, and its own version.
 */
export async function clusterOverview(
  api: AdminApi,
  backend: Pick<Backend, 'view' | 'nodeId'>,
  call: CallInfo,
): Promise<ClusterJson> {
  const short = { ...call, timeoutMs: Math.min(call.timeoutMs, MASTERS_MS) };
  const [check, nodes, upgrade] = await Promise.all([
    api.checkCluster({}, call),
    orUndefined(api.listNodes({}, short)),
    orUndefined(api.getUpgrade({}, short)),
  ]);
  const view = backend.view();
  return {
    clusterId: nodes?.clusterId ?? view.clusterId,
    answeringNode: backend.nodeId,
    ...(nodes === undefined ? {} : { masterLeader: nodes.masterLeader, leadingMs: nodes.leadingMs }),
    version: { inForce: upgrade?.inForce ?? '', newest: upgrade?.newest ?? '' },
    authentication: check.authentication,
    nodes: nodes?.nodes.map(nodeJson) ?? view.nodes.map(knownNode),
    health: healthJson(check),
  };
}

function knownNode({ descriptor }: ReturnType<Backend['view']>['nodes'][number]): NodeJson {
  const { nodeId, name, roles, version, peerAddress, clientAddress, httpAddress } = descriptor;
  const unknown = { silentMs: -1, maintenanceLeftMs: 0, replicas: 0, leaders: 0, bytes: 0 };
  return {
    ...{ id: nodeId, name, state: 'unknown', duty: 'unknown', roles, isMaster: false },
    ...{ version, peerAddress, clientAddress, httpAddress },
    ...{ ...unknown, capacityBytes: 0, availableBytes: 0, labels: {} },
  };
}

/** The masters' answer; undefined if they gave none. */
async function orUndefined<T extends admin.ListNodesResponse | admin.UpgradeStatus>(
  answer: Promise<T>,
): Promise<T | undefined> {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof ServiceError && WITHOUT_MASTERS.has(error.code)) return undefined;
    throw error;
  }
}

const WITHOUT_MASTERS: ReadonlySet<string> = new Set(['UNAVAILABLE', 'DEADLINE_EXCEEDED', 'NOT_LEADER']);
