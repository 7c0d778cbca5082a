import {
  added,
  bool,
  bytes,
  field,
  list,
  maybe,
  ms,
  optional,
  pair,
  spread,
  struct,
  text,
  textMap,
  uint,
  union,
  variant,
  words,
} from '../schema/kinds.ts';
import type { Infer } from '../schema/shape.ts';
import { AuthImage } from './auth-api.ts';
import { Epoch, JoiningNode, NodeState, PublicNode, RangeDescriptor } from './descriptor.ts';
import { CONDITIONS_OF_NODE_MAX, CONDITIONS_TOLD_MAX, HealthCondition } from './health/health.ts';
import { MinuteReport } from './heat/history-api.ts';

/** A node that is not in the initial cluster asks for an id; a known one confirms itself. */
export const JoinRequest = struct('join request', {
  nodeId: field(uint, 'The id of the node; 0: the masters allocate one.'),
  descriptor: field(JoiningNode, 'What the node says of itself.'),
});
export interface JoinRequest extends Infer<typeof JoinRequest> {}

export const JoinReply = struct('join reply', {
  nodeId: field(uint, 'The id of the node.'),
  clusterId: field(text, 'The id by which nodes identify themselves to each other.'),
});
export interface JoinReply extends Infer<typeof JoinReply> {}

/** How a leader sees another replica of its range. */
export const PeerReport = struct('peer report', {
  replicaId: field(uint, 'The other replica.'),
  state: field(words('peer state', ['probe', 'replicate', 'snapshot']), 'How the leader sends to it.'),
  match: field(uint, 'The highest index known to be durable there; 0: not heard of in this term.'),
  lagEntries: field(uint, 'How many entries it lacks.'),
  lagBytes: field(uint, 'How many bytes of entries it lacks.'),
  caughtUp: field(bool, 'It answers and lags so little that it may become a voter.'),
  silentMs: field(ms, 'Milliseconds that the leader has not heard of it; 0 while it answers.'),
});
export interface PeerReport extends Infer<typeof PeerReport> {}

const Rates = struct('rates', {
  readsPerS: field(ms, 'Reads per second, over about the last ten seconds.'),
  readBytesPerS: field(ms, 'Bytes read per second.'),
  writesPerS: field(ms, 'Writes per second.'),
  writeBytesPerS: field(ms, 'Bytes written per second.'),
});

/** The part of a report that only a range's leader knows. */
export const LeaderReport = struct('leader report', {
  keys: field(uint, 'About how many plain keys the range has.'),
  logEntries: field(uint, 'Entries in its log since the last snapshot: lag is measured by them.'),
  joint: field(bool, 'The configuration is joint.'),
  changePending: field(bool, 'A membership change is in the log and not applied.'),
  rates: spread(Rates, 'The load of the range.'),
  peers: field(list(PeerReport), 'The other replicas.'),
  sizeRemark: field(text, 'What is wrong with its size, for people; empty: nothing.'),
});
export interface LeaderReport extends Infer<typeof LeaderReport> {}

export const RangeReport = struct('range report', {
  rangeId: field(uint, 'The range.'),
  replicaId: field(uint, 'The replica of the node.'),
  epoch: field(Epoch, 'The epoch of the descriptor that this replica has.'),
  term: field(uint, 'Its term.'),
  applied: field(uint, 'The index of the last entry that it applied.'),
  bytes: field(uint, 'About how many bytes its rows have.'),
  silent: field(
    bool,
    'It has heard no leader for long and asks whether it still belongs to its range; `removeReplica` says no.',
  ),
  lead: field(optional(LeaderReport), 'What it knows as the leader; absent on other replicas.'),
});
export interface RangeReport extends Infer<typeof RangeReport> {}

const ReplicaIds = list(uint);

/** An instruction to a range's leader, by the ids of replicas. Instructions are idempotent. */
export const RangeInstruction = union('instruction', 'type', {
  addLearner: variant(0, {
    nodeId: field(uint, 'The node that gets the learner.'),
    replicaId: field(uint, 'The id of the learner.'),
  }),
  changeVoters: variant(1, {
    promote: field(ReplicaIds, 'Learners that become voters, in one change with the demotions.'),
    remove: field(ReplicaIds, 'Voters that become learners in the same change, and are then removed.'),
  }),
  demote: variant(2, { replicaId: field(uint, 'The voter that becomes a learner.') }),
  leaveJoint: variant(3, {}),
  transferLeader: variant(4, { replicaId: field(uint, 'The replica that leads from now on.') }),
  split: variant(5, {
    at: field(optional(bytes), 'A routing key; absent: the middle. The leader asks for ids and proposes the split.'),
  }),
  merge: variant(6, {
    source: field(RangeDescriptor, 'The neighbour that ends. The order goes to the leader of the range that stays.'),
    bytesMax: field(uint, 'Refused when the two have more bytes than this, as splits count them; 0: any size.'),
  }),
});
export type RangeInstruction = Infer<typeof RangeInstruction>;

/** An instruction on its way to the leader of a range. */
export const RangeOrder = struct('order', {
  orderId: field(uint, "Chosen by the masters' leader; the result names it."),
  rangeId: field(uint, 'The range.'),
  confVersion: field(uint, 'The version of the membership that it is meant for; refused with another one.'),
  instruction: field(RangeInstruction, 'What to do.'),
});
export interface RangeOrder extends Infer<typeof RangeOrder> {}

export const OrderResult = struct('order result', {
  orderId: field(uint, 'The order.'),
  outcome: field(
    words('outcome of an order', ['done', 'underWay', 'refused']),
    '`underWay`: begun, or should be repeated. `refused`: not possible, or not by this node; nothing was changed.',
  ),
  reason: field(text, 'The reason of a refusal or of a wait, for people.'),
});
export interface OrderResult extends Infer<typeof OrderResult> {}

/** The disk of a node's data. */
export const NodeSpace = struct('space', {
  capacityBytes: field(uint, 'The size of the disk.'),
  availableBytes: field(uint, 'How much of it is free.'),
});
export interface NodeSpace extends Infer<typeof NodeSpace> {}

/** What a heartbeat leaves out. */
export const HeartbeatChanges = struct('heartbeat changes', {
  number: field(uint, 'The number of this heartbeat; each is above the last one of the process.'),
  since: field(
    uint,
    '`ranges` has the replicas that changed since the heartbeat of this number, and perhaps others; 0: it has all.',
  ),
  ended: field(list(uint), 'Ranges of which the node has had a replica since then, and has none now.'),
});
export interface HeartbeatChanges extends Infer<typeof HeartbeatChanges> {}

/** Whether a new cluster has authentication, and how its user root logs in. */
export const FoundingKind = words('founding', ['open', 'password', 'certificate']);
export type FoundingKind = Infer<typeof FoundingKind>;

/** The versions of a node, as numbers: version 0.2 is 2, version 1.0 is 1,000. */
export const NodeVersions = struct('versions of a node', {
  min: field(uint, 'The lowest version that its build writes.'),
  max: field(uint, 'The highest version that its build writes.'),
  inForce: field(uint, 'The version in force, as far as it knows.'),
});
export interface NodeVersions extends Infer<typeof NodeVersions> {}

/** Sent by every node at an interval to the masters' leader. */
export const NodeHeartbeat = struct('node heartbeat', {
  nodeId: field(uint, 'The node.'),
  incarnation: field(text, 'The credential of the node.'),
  space: field(NodeSpace, 'The disk of its data.'),
  labels: field(textMap, 'Its place, by the name of the level: `zone` a, `rack` a3.'),
  hasMaster: field(bool, "It runs a replica of the masters' group."),
  ranges: field(list(RangeReport), 'Its replicas.'),
  results: field(list(OrderResult), 'How the orders of the last answer came out.'),
  conditions: field(list(HealthCondition, CONDITIONS_OF_NODE_MAX), 'What the node finds wrong with itself.'),
  authRevision: field(uint, 'The revision of the users and roles by which it decides; 0: it has none yet.'),
  changes: maybe(HeartbeatChanges, 'Absent: `ranges` has all replicas.'),
  viewVersion: maybe(text, 'The version of the view that the node has.'),
  founding: maybe(FoundingKind, 'How a founder founds the cluster. Absent once the node knows of a range.'),
  versions: maybe(NodeVersions, 'What the node can write.'),
  minute: added(maybe(MinuteReport, 'The last minute that it measured, until a heartbeat with it was answered.'), {
    since: '0.1.0',
    absent: undefined,
    skippable: 'for display',
  }),
});
export interface NodeHeartbeat extends Infer<typeof NodeHeartbeat> {}

/** A task for a node; repeated until its reports show that it is done. */
export const NodeTask = union('node task', 'type', {
  createReplica: variant(0, {
    descriptor: field(RangeDescriptor, 'The range.'),
    replicaId: field(uint, 'The replica to create.'),
  }),
  removeReplica: variant(1, {
    rangeId: field(uint, 'The range.'),
    replicaId: field(uint, 'The replica that is no longer a member.'),
    confVersion: field(uint, 'The version of the membership in which it is missing.'),
  }),
  order: variant(2, { order: field(RangeOrder, 'An order for the leader of a range.') }),
  becomeMaster: variant(3, {}),
  ceaseMaster: variant(4, {}),
});
export type NodeTask = Infer<typeof NodeTask>;

export const NodeEntry = struct('node entry', {
  descriptor: field(PublicNode, 'The node.'),
  state: field(NodeState, 'Whether it is heard.'),
});
export interface NodeEntry extends Infer<typeof NodeEntry> {}

export const ClusterView = struct('cluster view', {
  clusterId: field(text, 'The id that the cluster shows: nodes identify themselves to each other by another one.'),
  nodes: field(list(NodeEntry), 'All nodes.'),
  ranges: field(list(RangeDescriptor), 'All ranges.'),
  leaders: field(list(pair('leader', uint, uint)), 'Range id and last known leader node.'),
  masterLeader: field(uint, 'The node that leads the masters; 0: unknown.'),
});
export interface ClusterView extends Infer<typeof ClusterView> {}

/** The sizes at which a range is measured and split: bytes of rows with their keys, older versions included. */
export const SplitSizes = struct('split sizes', {
  checkBytes: field(uint, 'From here on the size is measured instead of counted.'),
  splitBytes: field(uint, 'A range of this size asks to be split.'),
  maxBytes: field(uint, 'Writes to a range of this size wait for its split.'),
});
export interface SplitSizes extends Infer<typeof SplitSizes> {}

/** The load that is a reason to split a range. */
export const SplitLoads = struct('split loads', {
  requestsPerS: field(uint, 'Reads and writes per second; 0: any number.'),
  bytesPerS: field(uint, 'Bytes read and written per second; 0: any number.'),
  holdMs: field(ms, 'Milliseconds that the load must last.'),
});
export interface SplitLoads extends Infer<typeof SplitLoads> {}

/** When leaders have their ranges split: the settings of the cluster that nodes read. */
export const SplitPolicy = struct('split policy', {
  automatic: field(bool, 'Whether ranges are split without an order.'),
  sizes: field(SplitSizes, 'By size.'),
  loads: field(SplitLoads, 'By load.'),
});
export interface SplitPolicy extends Infer<typeof SplitPolicy> {}

/** What the clocks of the masters' leader showed when it answered. */
export const LeaderClocks = struct('clocks', {
  nodeId: field(uint, 'The leader of the masters.'),
  wallMs: field(ms, 'Its wall time.'),
  monotonicMs: field(ms, 'Its monotonic time.'),
});
export interface LeaderClocks extends Infer<typeof LeaderClocks> {}

export const NodeHeartbeatReply = struct('heartbeat reply', {
  tasks: field(list(NodeTask), 'What the node should do.'),
  view: field(optional(ClusterView), 'The cluster; absent if the node has this version.'),
  incarnations: field(
    list(pair('incarnation', uint, text)),
    'Node id and incarnation of all nodes that were not removed. Only nodes that have proved their own incarnation get these.',
  ),
  splits: field(SplitPolicy, 'When ranges are split.'),
  auth: field(optional(AuthImage), 'Users and roles, if the node has an older revision of them.'),
  conditions: field(
    list(HealthCondition, CONDITIONS_TOLD_MAX),
    'What is wrong with the cluster, the worst first; conditions that make nodes unready are kept before others.',
  ),
  viewVersion: field(text, 'The version of the view; the next heartbeat names it.'),
  clocks: maybe(LeaderClocks, 'For the node to compare its own clocks with.'),
  clusterVersion: maybe(uint, 'The version in force: what the node writes up to.'),
});
export interface NodeHeartbeatReply extends Infer<typeof NodeHeartbeatReply> {}

/** Whether two reports of a range say the same. */
export function isSameReport(a: RangeReport, b: RangeReport): boolean {
  return (
    a.replicaId === b.replicaId &&
    a.epoch.confVersion === b.epoch.confVersion &&
    a.epoch.version === b.epoch.version &&
    a.term === b.term &&
    a.applied === b.applied &&
    a.bytes === b.bytes &&
    a.silent === b.silent &&
    isSameLead(a.lead, b.lead)
  );
}

function isSameLead(a: LeaderReport | undefined, b: LeaderReport | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return (
    a.keys === b.keys &&
    a.logEntries === b.logEntries &&
    a.joint === b.joint &&
    a.changePending === b.changePending &&
    a.readsPerS === b.readsPerS &&
    a.readBytesPerS === b.readBytesPerS &&
    a.writesPerS === b.writesPerS &&
    a.writeBytesPerS === b.writeBytesPerS &&
    a.sizeRemark === b.sizeRemark &&
    a.peers.length === b.peers.length &&
    a.peers.every((peer, i) => isSamePeer(peer, b.peers[i]))
  );
}

function isSamePeer(a: PeerReport, b: PeerReport | undefined): boolean {
  return (
    b !== undefined &&
    a.replicaId === b.replicaId &&
    a.state === b.state &&
    a.match === b.match &&
    a.lagEntries === b.lagEntries &&
    a.lagBytes === b.lagBytes &&
    a.caughtUp === b.caughtUp &&
    a.silentMs === b.silentMs
  );
}
