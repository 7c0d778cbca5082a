import {
  type CheckReport,
  type HotRangesRequest,
  type NodeOverview,
  type NodesOverview,
  RANGES_PAGE_MAX,
  type RangeOverview,
  type RangesOverview,
  type RangesRequest,
  type ReplicaReport,
  type SetSettingRequest,
  type SettingInfo,
  type TransferLeaderRequest,
} from '../admin-api.ts';
import {
  asBool,
  asBytes,
  asCount,
  asFields,
  asList,
  asMs,
  asText,
  asTextMap,
  invalid,
  textMapToWire,
  wireWords,
} from './check.ts';
import {
  decodePublicNode,
  decodeRangeDescriptor,
  encodePublicNode,
  encodeRangeDescriptor,
  NODE_STATES,
} from './descriptor.ts';
import { decodeHealthCondition, encodeHealthCondition } from './health.ts';
import { decodeNodeSpace, decodeRangeReport, encodeNodeSpace, encodeRangeReport } from './master.ts';
import { NODE_DUTIES } from './steering.ts';

const LOAD_MEASURES = wireWords('measure of load', ['requests', 'reads', 'readBytes', 'writes', 'writeBytes']);
/** Names and values of settings are short. */
const SETTING_CHARACTERS_MAX = 1_024;

function encodeNodeOverview(node: NodeOverview): unknown[] {
  return [
    encodePublicNode(node.descriptor),
    NODE_STATES.encode(node.state),
    NODE_DUTIES.encode(node.duty),
    node.maintenanceLeftMs,
    textMapToWire(node.labels),
    encodeNodeSpace(node.space),
    node.silentMs,
    node.replicas,
    node.leaders,
    node.bytes,
    node.isMaster,
  ];
}

function decodeNodeOverview(raw: unknown): NodeOverview {
  const f = asFields(raw, 11, 'node overview');
  return {
    descriptor: decodePublicNode(f[0]),
    state: NODE_STATES.decode(f[1]),
    duty: NODE_DUTIES.decode(f[2]),
    maintenanceLeftMs: asMs(f[3], 'maintenanceLeftMs'),
    labels: asTextMap(f[4], 'labels'),
    space: decodeNodeSpace(f[5]),
    silentMs: asMs(f[6], 'silentMs'),
    replicas: asCount(f[7], 'replicas'),
    leaders: asCount(f[8], 'leaders'),
    bytes: asCount(f[9], 'bytes'),
    isMaster: asBool(f[10], 'isMaster'),
  };
}

export function encodeNodesOverview(overview: NodesOverview): unknown[] {
  const { clusterId, masterLeader, leadingMs, nodes } = overview;
  return [clusterId, masterLeader, leadingMs, nodes.map(encodeNodeOverview)];
}

export function decodeNodesOverview(raw: unknown): NodesOverview {
  const f = asFields(raw, 4, 'nodes overview');
  return {
    clusterId: asText(f[0], 'clusterId'),
    masterLeader: asCount(f[1], 'masterLeader'),
    leadingMs: asMs(f[2], 'leadingMs'),
    nodes: asList(f[3], 'nodes', decodeNodeOverview),
  };
}

export function encodeRangesRequest({ from, limit, rangeId }: RangesRequest): unknown[] {
  return [from, limit, rangeId];
}

export function decodeRangesRequest(raw: unknown): RangesRequest {
  const f = asFields(raw, 3, 'ranges request');
  return { from: asBytes(f[0], 'from'), limit: asPageLimit(f[1]), rangeId: asCount(f[2], 'rangeId') };
}

export function encodeHotRangesRequest({ by, limit }: HotRangesRequest): unknown[] {
  return [LOAD_MEASURES.encode(by), limit];
}

export function decodeHotRangesRequest(raw: unknown): HotRangesRequest {
  const f = asFields(raw, 2, 'hot ranges request');
  return { by: LOAD_MEASURES.decode(f[0]), limit: asPageLimit(f[1]) };
}

function asPageLimit(raw: unknown): number {
  const limit = asCount(raw, 'limit');
  if (limit === 0 || limit > RANGES_PAGE_MAX) throw invalid('limit');
  return limit;
}

function encodeReplicaReport({ nodeId, silentMs, report }: ReplicaReport): unknown[] {
  return [nodeId, silentMs, encodeRangeReport(report)];
}

function decodeReplicaReport(raw: unknown): ReplicaReport {
  const f = asFields(raw, 3, 'replica report');
  return { nodeId: asCount(f[0], 'nodeId'), silentMs: asMs(f[1], 'silentMs'), report: decodeRangeReport(f[2]) };
}

function encodeRangeOverview({ descriptor, leaderNode, reports }: RangeOverview): unknown[] {
  return [encodeRangeDescriptor(descriptor), leaderNode, reports.map(encodeReplicaReport)];
}

function decodeRangeOverview(raw: unknown): RangeOverview {
  const f = asFields(raw, 3, 'range overview');
  return {
    descriptor: decodeRangeDescriptor(f[0]),
    leaderNode: asCount(f[1], 'leaderNode'),
    reports: asList(f[2], 'reports', decodeReplicaReport),
  };
}

export function encodeRangesOverview({ ranges, more }: RangesOverview): unknown[] {
  return [ranges.map(encodeRangeOverview), more];
}

export function decodeRangesOverview(raw: unknown): RangesOverview {
  const f = asFields(raw, 2, 'ranges overview');
  return { ranges: asList(f[0], 'ranges', decodeRangeOverview), more: asBool(f[1], 'more') };
}

export function encodeCheckReport({ nodes, ranges, conditions }: CheckReport): unknown[] {
  return [nodes, ranges, conditions.map(encodeHealthCondition)];
}

export function decodeCheckReport(raw: unknown): CheckReport {
  const f = asFields(raw, 3, 'check report');
  return {
    nodes: asCount(f[0], 'nodes'),
    ranges: asCount(f[1], 'ranges'),
    conditions: asList(f[2], 'conditions', decodeHealthCondition),
  };
}

function encodeSetting({ name, value, defaultValue, placeholder, description }: SettingInfo): unknown[] {
  return [name, value, defaultValue, placeholder, description];
}

function decodeSetting(raw: unknown): SettingInfo {
  const f = asFields(raw, 5, 'setting');
  return {
    name: asText(f[0], 'name'),
    value: asText(f[1], 'value'),
    defaultValue: asText(f[2], 'defaultValue'),
    placeholder: asText(f[3], 'placeholder'),
    description: asText(f[4], 'description'),
  };
}

export function encodeSettings(settings: readonly SettingInfo[]): unknown[] {
  return settings.map(encodeSetting);
}

export function decodeSettings(raw: unknown): readonly SettingInfo[] {
  return asList(raw, 'settings', decodeSetting);
}

export function encodeSetSetting({ name, value }: SetSettingRequest): unknown[] {
  return [name, value];
}

export function decodeSetSetting(raw: unknown): SetSettingRequest {
  const f = asFields(raw, 2, 'change of a setting');
  return { name: asSettingText(f[0]), value: asSettingText(f[1]) };
}

function asSettingText(raw: unknown): string {
  const text = asText(raw, 'setting');
  if (text.length > SETTING_CHARACTERS_MAX) throw invalid('setting');
  return text;
}

export function encodeTransferLeader({ rangeId, toNode }: TransferLeaderRequest): unknown[] {
  return [rangeId, toNode];
}

export function decodeTransferLeader(raw: unknown): TransferLeaderRequest {
  const f = asFields(raw, 2, 'leader transfer');
  return { rangeId: asCount(f[0], 'rangeId'), toNode: asCount(f[1], 'toNode') };
}
