/** Converts requests and answers of `remora.v1.Admin` from and to the messages between roles. */
import { ROOT } from '@remora/auth';
import { ServiceError, versionOf, versionText } from '@remora/base';
import {
  type AuthImage,
  type CheckReport,
  type HotRangesRequest,
  type LeaderReport,
  type LoadMeasure,
  type NodeOverview,
  type NodesOverview,
  RANGES_PAGE_MAX,
  type RangeOverview,
  type RangeStatus,
  type RangesRequest,
  type SettingInfo,
  type UpgradeStatus,
} from '@remora/protocol';
import type { admin } from '@remora/protocol/remora';

const RANGES_LIMIT_DEFAULT = 100;
const HOT_LIMIT_DEFAULT = 20;

/** Reads the id of a node or a range. */
export function toId(id: bigint, what: string): number {
  if (id > 0n && id <= BigInt(Number.MAX_SAFE_INTEGER)) return Number(id);
  throw new ServiceError('INVALID_ARGUMENT', `${what} must be a number above 0, not ${id}`);
}

/** Reads an id that may be missing: 0. */
export function toOptionalId(id: bigint, what: string): number {
  return id === 0n ? 0 : toId(id, what);
}

export function toRangesRequest(request: admin.ListRangesRequest): RangesRequest {
  const limit = request.limit === 0 ? RANGES_LIMIT_DEFAULT : Math.min(request.limit, RANGES_PAGE_MAX);
  return { from: request.from, limit, rangeId: toOptionalId(request.rangeId, 'range_id') };
}

/** A map, as the words come from clients: an object would also have `constructor`. */
const LOAD_MEASURES: ReadonlyMap<string, LoadMeasure> = new Map([
  ['', 'requests'],
  ['reads', 'reads'],
  ['read_bytes', 'readBytes'],
  ['writes', 'writes'],
  ['write_bytes', 'writeBytes'],
]);

export function toHotRangesRequest(request: admin.ListHotRangesRequest): HotRangesRequest {
  const by = LOAD_MEASURES.get(request.by);
  if (by === undefined) {
    const known = [...LOAD_MEASURES.keys()].filter((word) => word !== '');
    throw new ServiceError('INVALID_ARGUMENT', `by: expected one of ${known.join(', ')}, or nothing`);
  }
  return { by, limit: request.limit === 0 ? HOT_LIMIT_DEFAULT : Math.min(request.limit, RANGES_PAGE_MAX) };
}

/** Reads a version, such as 0.2; 0: there is none. */
export function toVersion(text: string): number {
  const version = text === '' ? 0 : versionOf(text);
  if (version !== undefined && (version > 0 || text === '')) return version;
  throw new ServiceError('INVALID_ARGUMENT', `version: "${text.slice(0, 20)}" is not a version such as 0.2`);
}

export function fromUpgrade({ inForce, newest, nodes, blockers }: UpgradeStatus): admin.UpgradeStatus {
  const shown = (version: number): string => (version === 0 ? '' : versionText(version));
  return {
    inForce: shown(inForce),
    newest: shown(newest),
    nodes: nodes.map(({ nodeId, name, build, state, min, max, inForce }) => ({
      ...{ id: nodeId, name, build, state },
      ...{ canWriteFrom: shown(min), canWriteTo: shown(max), knows: shown(inForce) },
    })),
    blockers: [...blockers],
  };
}

export function fromNodes(overview: NodesOverview): admin.ListNodesResponse {
  const { clusterId, masterLeader, leadingMs, nodes } = overview;
  return { clusterId, masterLeader, leadingMs: Math.floor(leadingMs), nodes: nodes.map(fromNode) };
}

function fromNode({ descriptor, silentMs, maintenanceLeftMs, labels, space, ...node }: NodeOverview): admin.Node {
  const { nodeId, roles, ...self } = descriptor;
  return {
    ...self,
    ...node,
    ...space,
    id: nodeId,
    roles: [...roles],
    labels: { ...labels },
    silentMs: Math.floor(silentMs),
    maintenanceLeftMs: Math.ceil(maintenanceLeftMs),
  };
}

/** `status`: from the range's leader. */
export function fromRange(
  { descriptor, leaderNode, reports }: RangeOverview,
  status: RangeStatus | undefined,
): admin.Range {
  const { rangeId, start, end, epoch, revisionSource } = descriptor;
  const leading = status?.replicas.some(({ state }) => state === 'leader') ? status : undefined;
  const reported = new Map(reports.map((each) => [each.report.replicaId, each]));
  return {
    id: rangeId,
    start: Buffer.from(start),
    end: Buffer.from(end),
    ...epoch,
    leaderNode: leading?.leaderNode ?? leaderNode,
    replicas: descriptor.replicas.map(({ replicaId, nodeId, type }) => {
      const report = reported.get(replicaId);
      return {
        id: replicaId,
        nodeId,
        type,
        ...replicaState(replicaId, leading),
        bytes: report?.report.bytes ?? 0,
        silentMs: report === undefined ? -1 : Math.floor(report.silentMs),
      };
    }),
    revisionSource,
    state: leading === undefined ? undefined : fromStatus(leading),
    load: fromLoad(reports.find(({ nodeId }) => nodeId === leaderNode)?.report.lead),
  };
}

function replicaState(
  replicaId: number,
  status: RangeStatus | undefined,
): { readonly state: string; readonly logBehind: number; readonly commitBehind: number } {
  const leader = status?.replicas.find(({ state }) => state === 'leader');
  const own = status?.replicas.find((replica) => replica.replicaId === replicaId);
  if (leader === undefined || own === undefined) return { state: 'unknown', logBehind: -1, commitBehind: -1 };
  return {
    state: own.state,
    logBehind: Math.max(0, leader.match - own.match),
    commitBehind: Math.max(0, leader.commit - own.commit),
  };
}

function fromLoad(lead: LeaderReport | undefined): admin.RangeLoad | undefined {
  if (lead === undefined) return undefined;
  const { readsPerS, readBytesPerS, writesPerS, writeBytesPerS } = lead;
  return { readsPerS, readBytesPerS, writesPerS, writeBytesPerS };
}

function fromStatus(status: RangeStatus): admin.RangeState {
  const { term, commit, applied, revision, compactRevision, bytes, keys, leases, watches } = status;
  return { term, commit, applied, revision, compactRevision, bytes, keys, leases, watches };
}

export function fromCheck(
  { nodes, ranges, conditions }: CheckReport,
  { enabled: authentication, users }: AuthImage,
): admin.CheckClusterResponse {
  const rootUsers = users.filter(({ roles }) => roles.includes(ROOT)).map(({ name }) => name);
  return { nodes, ranges, conditions: [...conditions], authentication, rootUsers };
}

export function fromSettings(settings: readonly SettingInfo[]): admin.ListSettingsResponse {
  return { settings: [...settings] };
}
