import {
  bool,
  bytes,
  field,
  list,
  ms,
  struct,
  text,
  textMap,
  textOf,
  uint,
  uintBetween,
  words,
} from '../schema/kinds.ts';
import type { Infer } from '../schema/shape.ts';
import { NodeState, PublicNode, RangeDescriptor } from './descriptor.ts';
import { HealthCondition } from './health/health.ts';
import { NodeSpace, RangeReport } from './master-api.ts';
import { NodeDuty } from './steering-api.ts';

export const NodeOverview = struct('node overview', {
  descriptor: field(PublicNode, 'The node.'),
  state: field(NodeState, 'Whether it is heard.'),
  duty: field(NodeDuty, 'What its operators want of it.'),
  maintenanceLeftMs: field(ms, 'Milliseconds until its maintenance window ends; 0: there is none.'),
  labels: field(textMap, 'Its place, by the name of the level.'),
  space: field(NodeSpace, 'The disk of its data.'),
  silentMs: field(ms, 'Milliseconds since its last heartbeat; -1: this leader has heard none.'),
  replicas: field(uint, 'Its replicas, as the ranges list them: those of a silent node count too.'),
  leaders: field(uint, 'How many ranges it leads.'),
  bytes: field(uint, 'The bytes of its replicas, as its last heartbeat says.'),
  isMaster: field(bool, 'It is a member of the group of the masters.'),
});
export interface NodeOverview extends Infer<typeof NodeOverview> {}

/** What the masters' leader tells operators of the nodes, as it knows them from heartbeats. */
export const NodesOverview = struct('nodes overview', {
  clusterId: field(text, 'The id that the cluster shows.'),
  masterLeader: field(uint, 'The node that leads the masters.'),
  leadingMs: field(ms, 'Milliseconds that it has been leading: what it knows of nodes is no older.'),
  nodes: field(list(NodeOverview), 'All nodes.'),
});
export interface NodesOverview extends Infer<typeof NodesOverview> {}

/** How far an upgrade has come. Versions are numbers: version 0.2 is 2, version 1.0 is 1,000. */
export const UpgradeStatus = struct('upgrade status', {
  inForce: field(uint, 'The version in force.'),
  newest: field(uint, 'The newest version that any node can write.'),
  nodes: field(
    list(
      struct('node in an upgrade', {
        nodeId: field(uint, 'The node.'),
        name: field(text, 'Its name.'),
        build: field(text, 'Its release.'),
        state: field(NodeState, 'Whether it is heard.'),
        min: field(uint, 'The lowest version that it writes; 0: not heard.'),
        max: field(uint, 'The highest version that it writes; 0: not heard.'),
        inForce: field(uint, 'The version in force, as far as it knows; 0: not heard.'),
      }),
    ),
    'All nodes that were not removed.',
  ),
  blockers: field(list(text), 'What keeps the newest version from coming into force, for people.'),
});
export interface UpgradeStatus extends Infer<typeof UpgradeStatus> {}

export const FinalizeUpgradeRequest = struct('request to finalize an upgrade', {
  version: field(uint, 'The version that comes into force; 0: the newest one that any node can write.'),
});
export interface FinalizeUpgradeRequest extends Infer<typeof FinalizeUpgradeRequest> {}

/** Most ranges in one answer. */
export const RANGES_PAGE_MAX = 500;
const PageLimit = uintBetween(1, RANGES_PAGE_MAX);

/** One page of the ranges in the order of their keys, or one range. */
export const RangesRequest = struct('ranges request', {
  from: field(bytes, 'A routing key: the first range is the one that ends behind it.'),
  limit: field(PageLimit, 'The most ranges to return.'),
  rangeId: field(uint, 'Only this range; 0: all.'),
});
export interface RangesRequest extends Infer<typeof RangesRequest> {}

const LoadMeasureKind = words('measure of load', ['requests', 'reads', 'readBytes', 'writes', 'writeBytes']);
/** By requests per second, or by bytes per second. */
export type LoadMeasure = Infer<typeof LoadMeasureKind>;

/** The ranges with the most load first; ranges without a report are left out. */
export const HotRangesRequest = struct('hot ranges request', {
  by: field(LoadMeasureKind, 'What the ranges are sorted by.'),
  limit: field(PageLimit, 'The most ranges to return.'),
});
export interface HotRangesRequest extends Infer<typeof HotRangesRequest> {}

export const ReplicaReport = struct('replica report', {
  nodeId: field(uint, 'The node that reported.'),
  silentMs: field(ms, 'How long ago, in milliseconds.'),
  report: field(RangeReport, 'What it reported.'),
});
export interface ReplicaReport extends Infer<typeof ReplicaReport> {}

export const RangeOverview = struct('range overview', {
  descriptor: field(RangeDescriptor, 'The range.'),
  leaderNode: field(uint, 'The node that leads it as far as known; 0: none.'),
  reports: field(list(ReplicaReport), 'What the nodes reported of their replicas.'),
});
export interface RangeOverview extends Infer<typeof RangeOverview> {}

export const RangesOverview = struct('ranges overview', {
  ranges: field(list(RangeOverview), 'The ranges.'),
  more: field(bool, 'There are more: ask again from the end of the last one.'),
});
export interface RangesOverview extends Infer<typeof RangesOverview> {}

export const CheckReport = struct('check report', {
  nodes: field(uint, 'How many nodes there are.'),
  ranges: field(uint, 'How many ranges there are.'),
  conditions: field(list(HealthCondition), 'What is wrong, the worst first.'),
});
export interface CheckReport extends Infer<typeof CheckReport> {}

/** One setting of the cluster, with values as people write them. */
export const SettingInfo = struct('setting', {
  name: field(text, 'The name of the setting.'),
  value: field(text, 'Its value.'),
  defaultValue: field(text, 'Its value if nobody sets it.'),
  placeholder: field(text, 'The form of a value: `<duration>`.'),
  description: field(text, 'What it does.'),
});
export interface SettingInfo extends Infer<typeof SettingInfo> {}

/** Names and values of settings are short. */
const SettingText = textOf({ max: 1_024 });

export const SetSettingRequest = struct('change of a setting', {
  name: field(SettingText, 'The setting to change.'),
  value: field(SettingText, 'Its new value; empty: the default.'),
});
export interface SetSettingRequest extends Infer<typeof SetSettingRequest> {}

export const TransferLeaderRequest = struct('leader transfer', {
  rangeId: field(uint, 'The range.'),
  toNode: field(uint, 'The node that leads it from now on.'),
});
export interface TransferLeaderRequest extends Infer<typeof TransferLeaderRequest> {}
