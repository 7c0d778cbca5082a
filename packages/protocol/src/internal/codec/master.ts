import type {
  ClusterView,
  JoinReply,
  JoinRequest,
  NodeEntry,
  NodeHeartbeat,
  NodeHeartbeatReply,
  NodeTask,
  RangeReport,
} from '../master-api.ts';
import { asBool, asCount, asFields, asList, asText, invalid } from './check.ts';
import {
  decodeNodeDescriptor,
  decodeNodeSelf,
  decodeRangeDescriptor,
  encodeNodeDescriptor,
  encodeNodeSelf,
  encodeRangeDescriptor,
  NODE_STATES,
} from './descriptor.ts';

export function encodeJoinRequest(request: JoinRequest): unknown[] {
  return [request.nodeId, encodeNodeSelf(request.descriptor)];
}

export function decodeJoinRequest(raw: unknown): JoinRequest {
  const f = asFields(raw, 2, 'join request');
  return { nodeId: asCount(f[0], 'nodeId'), descriptor: decodeNodeSelf(f[1]) };
}

export function encodeJoinReply(reply: JoinReply): unknown[] {
  return [reply.nodeId, reply.clusterId];
}

export function decodeJoinReply(raw: unknown): JoinReply {
  const f = asFields(raw, 2, 'join reply');
  return { nodeId: asCount(f[0], 'nodeId'), clusterId: asText(f[1], 'clusterId') };
}

function encodeRangeReport(report: RangeReport): unknown[] {
  return [report.rangeId, report.replicaId, report.leader, report.term, report.applied, report.bytes];
}

function decodeRangeReport(raw: unknown): RangeReport {
  const f = asFields(raw, 6, 'range report');
  return {
    rangeId: asCount(f[0], 'report.rangeId'),
    replicaId: asCount(f[1], 'report.replicaId'),
    leader: asBool(f[2], 'report.leader'),
    term: asCount(f[3], 'report.term'),
    applied: asCount(f[4], 'report.applied'),
    bytes: asCount(f[5], 'report.bytes'),
  };
}

export function encodeNodeHeartbeat(beat: NodeHeartbeat): unknown[] {
  return [beat.nodeId, beat.incarnation, beat.ranges.map(encodeRangeReport)];
}

export function decodeNodeHeartbeat(raw: unknown): NodeHeartbeat {
  const f = asFields(raw, 3, 'node heartbeat');
  return {
    nodeId: asCount(f[0], 'nodeId'),
    incarnation: asText(f[1], 'incarnation'),
    ranges: asList(f[2], 'ranges', decodeRangeReport),
  };
}

const TASK_CREATE_REPLICA = 0;

export function encodeNodeTask(task: NodeTask): unknown[] {
  return [TASK_CREATE_REPLICA, encodeRangeDescriptor(task.descriptor), task.replicaId];
}

export function decodeNodeTask(raw: unknown): NodeTask {
  const f = asFields(raw, 3, 'node task');
  if (f[0] !== TASK_CREATE_REPLICA) throw invalid('node task tag');
  return {
    type: 'createReplica',
    descriptor: decodeRangeDescriptor(f[1]),
    replicaId: asCount(f[2], 'task.replicaId'),
  };
}

function encodeNodeEntry(entry: NodeEntry): unknown[] {
  return [encodeNodeDescriptor(entry.descriptor), NODE_STATES.encode(entry.state)];
}

function decodeNodeEntry(raw: unknown): NodeEntry {
  const f = asFields(raw, 2, 'node entry');
  return { descriptor: decodeNodeDescriptor(f[0]), state: NODE_STATES.decode(f[1]) };
}

function decodeLeader(raw: unknown): readonly [rangeId: number, nodeId: number] {
  const f = asFields(raw, 2, 'leader');
  return [asCount(f[0], 'leader.rangeId'), asCount(f[1], 'leader.nodeId')];
}

export function encodeClusterView(view: ClusterView): unknown[] {
  return [
    view.clusterId,
    view.nodes.map(encodeNodeEntry),
    view.ranges.map(encodeRangeDescriptor),
    view.leaders.map(([rangeId, nodeId]) => [rangeId, nodeId]),
    view.masterLeader,
  ];
}

export function decodeClusterView(raw: unknown): ClusterView {
  const f = asFields(raw, 5, 'cluster view');
  return {
    clusterId: asText(f[0], 'clusterId'),
    nodes: asList(f[1], 'nodes', decodeNodeEntry),
    ranges: asList(f[2], 'ranges', decodeRangeDescriptor),
    leaders: asList(f[3], 'leaders', decodeLeader),
    masterLeader: asCount(f[4], 'masterLeader'),
  };
}

export function encodeNodeHeartbeatReply(reply: NodeHeartbeatReply): unknown[] {
  return [reply.tasks.map(encodeNodeTask), encodeClusterView(reply.view)];
}

export function decodeNodeHeartbeatReply(raw: unknown): NodeHeartbeatReply {
  const f = asFields(raw, 2, 'heartbeat reply');
  return { tasks: asList(f[0], 'tasks', decodeNodeTask), view: decodeClusterView(f[1]) };
}
