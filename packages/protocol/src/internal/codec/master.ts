import { unreachable } from '@remora/base';
import { CONDITIONS_OF_NODE_MAX, CONDITIONS_TOLD_MAX } from '../health.ts';
import type {
  ClusterView,
  JoinReply,
  JoinRequest,
  LeaderReport,
  NodeEntry,
  NodeHeartbeat,
  NodeHeartbeatReply,
  NodeSpace,
  NodeTask,
  OrderResult,
  PeerReport,
  RangeInstruction,
  RangeOrder,
  RangeReport,
  SplitPolicy,
} from '../master-api.ts';
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
  decodeEpoch,
  decodeJoiningSelf,
  decodePublicNode,
  decodeRangeDescriptor,
  encodeEpoch,
  encodeNodeSelf,
  encodePublicNode,
  encodeRangeDescriptor,
  NODE_STATES,
} from './descriptor.ts';
import { decodeHealthConditions, encodeHealthCondition } from './health.ts';

export function encodeJoinRequest(request: JoinRequest): unknown[] {
  return [request.nodeId, encodeNodeSelf(request.descriptor)];
}

export function decodeJoinRequest(raw: unknown): JoinRequest {
  const f = asFields(raw, 2, 'join request');
  return { nodeId: asCount(f[0], 'nodeId'), descriptor: decodeJoiningSelf(f[1]) };
}

export function encodeJoinReply(reply: JoinReply): unknown[] {
  return [reply.nodeId, reply.clusterId];
}

export function decodeJoinReply(raw: unknown): JoinReply {
  const f = asFields(raw, 2, 'join reply');
  return { nodeId: asCount(f[0], 'nodeId'), clusterId: asText(f[1], 'clusterId') };
}

const PEER_STATES = wireWords('peer state', ['probe', 'replicate', 'snapshot']);

function encodePeer(peer: PeerReport): unknown[] {
  const { replicaId, state, match, lagEntries, lagBytes, caughtUp, silentMs } = peer;
  return [replicaId, PEER_STATES.encode(state), match, lagEntries, lagBytes, caughtUp, silentMs];
}

function decodePeer(raw: unknown): PeerReport {
  const f = asFields(raw, 7, 'peer report');
  return {
    replicaId: asCount(f[0], 'peer.replicaId'),
    state: PEER_STATES.decode(f[1]),
    match: asCount(f[2], 'peer.match'),
    lagEntries: asCount(f[3], 'peer.lagEntries'),
    lagBytes: asCount(f[4], 'peer.lagBytes'),
    caughtUp: asBool(f[5], 'peer.caughtUp'),
    silentMs: asMs(f[6], 'peer.silentMs'),
  };
}

function encodeLead(lead: LeaderReport): unknown[] {
  const { readsPerS, readBytesPerS, writesPerS, writeBytesPerS } = lead;
  return [
    lead.keys,
    lead.logEntries,
    lead.joint,
    lead.changePending,
    [readsPerS, readBytesPerS, writesPerS, writeBytesPerS],
    lead.peers.map(encodePeer),
    lead.sizeRemark,
  ];
}

function decodeLead(raw: unknown): LeaderReport {
  const f = asFields(raw, 7, 'leader report');
  const rates = asFields(f[4], 4, 'leader rates');
  return {
    keys: asCount(f[0], 'lead.keys'),
    logEntries: asCount(f[1], 'lead.logEntries'),
    joint: asBool(f[2], 'lead.joint'),
    changePending: asBool(f[3], 'lead.changePending'),
    readsPerS: asMs(rates[0], 'lead.readsPerS'),
    readBytesPerS: asMs(rates[1], 'lead.readBytesPerS'),
    writesPerS: asMs(rates[2], 'lead.writesPerS'),
    writeBytesPerS: asMs(rates[3], 'lead.writeBytesPerS'),
    peers: asList(f[5], 'lead.peers', decodePeer),
    sizeRemark: asText(f[6], 'lead.sizeRemark'),
  };
}

export function encodeRangeReport(report: RangeReport): unknown[] {
  const { rangeId, replicaId, epoch, term, applied, bytes, silent, lead } = report;
  return [
    rangeId,
    replicaId,
    encodeEpoch(epoch),
    term,
    applied,
    bytes,
    silent,
    lead === undefined ? null : encodeLead(lead),
  ];
}

export function decodeRangeReport(raw: unknown): RangeReport {
  const f = asFields(raw, 8, 'range report');
  return {
    rangeId: asCount(f[0], 'report.rangeId'),
    replicaId: asCount(f[1], 'report.replicaId'),
    epoch: decodeEpoch(f[2]),
    term: asCount(f[3], 'report.term'),
    applied: asCount(f[4], 'report.applied'),
    bytes: asCount(f[5], 'report.bytes'),
    silent: asBool(f[6], 'report.silent'),
    lead: f[7] === null ? undefined : decodeLead(f[7]),
  };
}

const OUTCOMES = wireWords('outcome of an order', ['done', 'underWay', 'refused']);

function encodeOrderResult({ orderId, outcome, reason }: OrderResult): unknown[] {
  return [orderId, OUTCOMES.encode(outcome), reason];
}

function decodeOrderResult(raw: unknown): OrderResult {
  const f = asFields(raw, 3, 'order result');
  return {
    orderId: asCount(f[0], 'result.orderId'),
    outcome: OUTCOMES.decode(f[1]),
    reason: asText(f[2], 'result.reason'),
  };
}

export function encodeNodeSpace({ capacityBytes, availableBytes }: NodeSpace): unknown[] {
  return [capacityBytes, availableBytes];
}

export function decodeNodeSpace(raw: unknown): NodeSpace {
  const f = asFields(raw, 2, 'space');
  return {
    capacityBytes: asCount(f[0], 'space.capacityBytes'),
    availableBytes: asCount(f[1], 'space.availableBytes'),
  };
}

export function encodeNodeHeartbeat(beat: NodeHeartbeat): unknown[] {
  const { nodeId, incarnation, space, labels, hasMaster, ranges, results, conditions } = beat;
  return [
    nodeId,
    incarnation,
    encodeNodeSpace(space),
    textMapToWire(labels),
    hasMaster,
    ranges.map(encodeRangeReport),
    results.map(encodeOrderResult),
    conditions.map(encodeHealthCondition),
  ];
}

export function decodeNodeHeartbeat(raw: unknown): NodeHeartbeat {
  const f = asFields(raw, 8, 'node heartbeat');
  return {
    nodeId: asCount(f[0], 'nodeId'),
    incarnation: asText(f[1], 'incarnation'),
    space: decodeNodeSpace(f[2]),
    labels: asTextMap(f[3], 'labels'),
    hasMaster: asBool(f[4], 'hasMaster'),
    ranges: asList(f[5], 'ranges', decodeRangeReport),
    results: asList(f[6], 'results', decodeOrderResult),
    conditions: decodeHealthConditions(f[7], CONDITIONS_OF_NODE_MAX),
  };
}

const INSTRUCTION = {
  addLearner: 0,
  changeVoters: 1,
  demote: 2,
  leaveJoint: 3,
  transferLeader: 4,
  split: 5,
  merge: 6,
} as const;

function encodeInstruction(instruction: RangeInstruction): unknown[] {
  const tag = INSTRUCTION[instruction.type];
  switch (instruction.type) {
    case 'addLearner':
      return [tag, instruction.nodeId, instruction.replicaId];
    case 'changeVoters':
      return [tag, instruction.promote, instruction.remove];
    case 'demote':
    case 'transferLeader':
      return [tag, instruction.replicaId];
    case 'leaveJoint':
      return [tag];
    case 'split':
      return [tag, instruction.at ?? null];
    case 'merge':
      return [tag, encodeRangeDescriptor(instruction.source), instruction.bytesMax];
    default:
      return unreachable(instruction);
  }
}

function decodeInstruction(raw: unknown): RangeInstruction {
  if (!Array.isArray(raw)) throw invalid('instruction');
  const ids = (list: unknown): number[] => asList(list, 'replica ids', (id) => asCount(id, 'replica id'));
  switch (raw[0]) {
    case INSTRUCTION.addLearner: {
      const f = asFields(raw, 3, 'instruction');
      return { type: 'addLearner', nodeId: asCount(f[1], 'nodeId'), replicaId: asCount(f[2], 'replicaId') };
    }
    case INSTRUCTION.changeVoters: {
      const f = asFields(raw, 3, 'instruction');
      return { type: 'changeVoters', promote: ids(f[1]), remove: ids(f[2]) };
    }
    case INSTRUCTION.demote:
      return { type: 'demote', replicaId: asCount(asFields(raw, 2, 'instruction')[1], 'replicaId') };
    case INSTRUCTION.leaveJoint:
      asFields(raw, 1, 'instruction');
      return { type: 'leaveJoint' };
    case INSTRUCTION.transferLeader:
      return { type: 'transferLeader', replicaId: asCount(asFields(raw, 2, 'instruction')[1], 'replicaId') };
    case INSTRUCTION.split: {
      const [, at] = asFields(raw, 2, 'instruction');
      return { type: 'split', at: at === null ? undefined : asBytes(at, 'split.at') };
    }
    case INSTRUCTION.merge: {
      const [, source, bytesMax] = asFields(raw, 3, 'instruction');
      return { type: 'merge', source: decodeRangeDescriptor(source), bytesMax: asCount(bytesMax, 'merge.bytesMax') };
    }
    default:
      throw invalid('instruction tag');
  }
}

const TASK = { createReplica: 0, removeReplica: 1, order: 2, becomeMaster: 3, ceaseMaster: 4 } as const;

export function encodeNodeTask(task: NodeTask): unknown[] {
  switch (task.type) {
    case 'createReplica':
      return [TASK.createReplica, encodeRangeDescriptor(task.descriptor), task.replicaId];
    case 'removeReplica':
      return [TASK.removeReplica, task.rangeId, task.replicaId, task.confVersion];
    case 'order': {
      const { orderId, rangeId, confVersion, instruction } = task.order;
      return [TASK.order, orderId, rangeId, confVersion, encodeInstruction(instruction)];
    }
    case 'becomeMaster':
    case 'ceaseMaster':
      return [TASK[task.type]];
    default:
      return unreachable(task);
  }
}

export function decodeNodeTask(raw: unknown): NodeTask {
  if (!Array.isArray(raw)) throw invalid('node task');
  switch (raw[0]) {
    case TASK.createReplica: {
      const f = asFields(raw, 3, 'node task');
      const descriptor = decodeRangeDescriptor(f[1]);
      return { type: 'createReplica', descriptor, replicaId: asCount(f[2], 'task.replicaId') };
    }
    case TASK.removeReplica: {
      const f = asFields(raw, 4, 'node task');
      const [rangeId, replicaId] = [asCount(f[1], 'task.rangeId'), asCount(f[2], 'task.replicaId')];
      return { type: 'removeReplica', rangeId, replicaId, confVersion: asCount(f[3], 'task.confVersion') };
    }
    case TASK.order:
      return { type: 'order', order: decodeOrder(asFields(raw, 5, 'node task')) };
    case TASK.becomeMaster:
    case TASK.ceaseMaster:
      asFields(raw, 1, 'node task');
      return { type: raw[0] === TASK.becomeMaster ? 'becomeMaster' : 'ceaseMaster' };
    default:
      throw invalid('node task tag');
  }
}

function decodeOrder(f: readonly unknown[]): RangeOrder {
  return {
    orderId: asCount(f[1], 'order.orderId'),
    rangeId: asCount(f[2], 'order.rangeId'),
    confVersion: asCount(f[3], 'order.confVersion'),
    instruction: decodeInstruction(f[4]),
  };
}

function encodeNodeEntry(entry: NodeEntry): unknown[] {
  return [encodePublicNode(entry.descriptor), NODE_STATES.encode(entry.state)];
}

function decodeNodeEntry(raw: unknown): NodeEntry {
  const f = asFields(raw, 2, 'node entry');
  return { descriptor: decodePublicNode(f[0]), state: NODE_STATES.decode(f[1]) };
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

function encodeSplitPolicy({ automatic, sizes, loads }: SplitPolicy): unknown[] {
  const { checkBytes, splitBytes, maxBytes } = sizes;
  const { requestsPerS, bytesPerS, holdMs } = loads;
  return [automatic, checkBytes, splitBytes, maxBytes, requestsPerS, bytesPerS, holdMs];
}

function decodeSplitPolicy(raw: unknown): SplitPolicy {
  const f = asFields(raw, 7, 'split policy');
  return {
    automatic: asBool(f[0], 'splits.automatic'),
    sizes: {
      checkBytes: asCount(f[1], 'splits.checkBytes'),
      splitBytes: asCount(f[2], 'splits.splitBytes'),
      maxBytes: asCount(f[3], 'splits.maxBytes'),
    },
    loads: {
      requestsPerS: asCount(f[4], 'splits.requestsPerS'),
      bytesPerS: asCount(f[5], 'splits.bytesPerS'),
      holdMs: asMs(f[6], 'splits.holdMs'),
    },
  };
}

function decodeIncarnation(raw: unknown): readonly [nodeId: number, incarnation: string] {
  const f = asFields(raw, 2, 'incarnation');
  return [asCount(f[0], 'incarnation.nodeId'), asText(f[1], 'incarnation')];
}

export function encodeNodeHeartbeatReply(reply: NodeHeartbeatReply): unknown[] {
  const { tasks, view, incarnations, splits, conditions } = reply;
  return [
    tasks.map(encodeNodeTask),
    encodeClusterView(view),
    incarnations.map(([nodeId, incarnation]) => [nodeId, incarnation]),
    encodeSplitPolicy(splits),
    conditions.map(encodeHealthCondition),
  ];
}

export function decodeNodeHeartbeatReply(raw: unknown): NodeHeartbeatReply {
  const f = asFields(raw, 5, 'heartbeat reply');
  return {
    tasks: asList(f[0], 'tasks', decodeNodeTask),
    view: decodeClusterView(f[1]),
    incarnations: asList(f[2], 'incarnations', decodeIncarnation),
    splits: decodeSplitPolicy(f[3]),
    conditions: decodeHealthConditions(f[4], CONDITIONS_TOLD_MAX),
  };
}
