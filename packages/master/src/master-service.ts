import { type Clock, type Logger, ServiceError, unreachable } from '@remora/base';
import {
  type AskSplitReply,
  type AskSplitRequest,
  type Caller,
  type ClusterView,
  certifies,
  type Done,
  type Epoch,
  type JoinReply,
  type JoinRequest,
  masterAskSplit,
  masterDrawRevisions,
  masterHeartbeat,
  masterJoin,
  masterRangeChanged,
  masterStrikeOff,
  masterView,
  type NodeDescriptor,
  type NodeHeartbeat,
  type NodeHeartbeatReply,
  type NodeTask,
  type RangeDescriptor,
  type RangeReport,
  type RpcRegistry,
  sameNodeDescriptor,
  shownNames,
} from '@remora/protocol';
import type { ClusterHealth } from './admin/cluster-health.ts';
import { splitPolicyOf } from './admin/range-settings.ts';
import type { ClusterSettings } from './admin/settings.ts';
import type { ClusterHistory } from './history/cluster-history.ts';
import { MasterView } from './master-view.ts';
import { masterTask } from './masters/master-membership-controller.ts';
import type { MasterCommand } from './metadata/master-commands.ts';
import { FIRST_ALLOCATED_NODE, type MasterState } from './metadata/master-state.ts';
import type { AuthRollout } from './nodes/auth-rollout.ts';
import { JoinRate } from './nodes/join-rate.ts';
import type { NodeReports } from './nodes/node-reports.ts';
import { strikeOff } from './nodes/strike-off.ts';
import type { FirstRange } from './ranges/first-range.ts';
import type { Founding } from './ranges/founding.ts';
import type { RangeOrders } from './ranges/range-orders.ts';
import { replicaTasks } from './ranges/replica-tasks.ts';
import type { Liveness } from './scheduling/cluster-model.ts';
import type { CommandDone } from './term/proposals.ts';
import type { RevisionIssuer } from './term/revision-issuer.ts';
import type { ScheduleCoordinator } from './term/schedule-coordinator.ts';

export interface MasterServiceDeps {
  readonly nodeId: number;
  readonly clusterId: string;
  /** The name of the cluster in views. */
  readonly shownClusterId: string;
  /** The names of the founding members, if this node is one of them. */
  readonly founderNames: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
  readonly state: MasterState;
  readonly orders: RangeOrders;
  readonly reports: NodeReports;
  readonly revisions: RevisionIssuer;
  readonly firstRange: FirstRange;
  readonly rollout: Pick<AuthRollout, 'look'>;
  readonly founding: Pick<Founding, 'isAuthTold'>;
  readonly health: Pick<ClusterHealth, 'told'>;
  readonly history: Pick<ClusterHistory, 'reported'>;
  readonly settings: () => ClusterSettings;
  /** Whether it may answer from its state (master.ts M3). */
  readonly leading: () => boolean;
  /** The leader as far as this master knows, possibly itself; 0: none. */
  readonly leader: () => number;
  /** The term in which it leads; 0 if it does not. */
  readonly term: () => number;
  /** Defined while it leads. */
  readonly care: () => ScheduleCoordinator | undefined;
  readonly stateOf: (nodeId: number) => Liveness;
  readonly isSilent: (nodeId: number) => boolean;
  readonly notLeader: () => ServiceError;
  /** Answers once this master is known to have led after the call, or with the error. */
  readonly confirm: (done: (error: ServiceError | undefined) => void) => void;
  readonly propose: (command: MasterCommand, done: CommandDone) => void;
}

/** SV3. Each node has a row in every view. */
const NODES_MAX = 1_000;

/**
 * Serves nodes and gateways: the masters' leader answers, the other masters name the leader.
 *
 * SV1. A refused node ends for good. So a refusal is based only on the latest state: a deposed leader that has not
 *      heard of its successor may not know that the node was assigned its id, or that the node's name has become free.
 * SV2. A caller registers only the id that it presented on its link (protocol/rpc/access.ts), or requests a new one.
 *      Ids below those that the masters assign belong to founding members: an unregistered one can be registered only
 *      by a verified caller. No other node can take the name of a founding member.
 * SV3. Without TLS, anyone who reaches the port may join, so the number of nodes is bounded. With it, a node registers
 *      only the name in its certificate.
 * SV4. A node that joins exactly as it is registered is answered without a proposal, by a leader that is known to lead:
 *      a deposed leader may know an outdated address of the node. Callers that are not known as nodes can cause only
 *      few registrations at a time and per second (nodes/join-rate.ts), so strangers cannot overload the log.
 * SV5. A heartbeat counts only for the node that sent it, as its link was verified: what it reports decides about
 *      replicas, leaders and when a change of users is in force.
 */
export class MasterService {
  readonly #deps: MasterServiceDeps;
  /** Registrations that are proposed and not answered. */
  #registering = 0;
  readonly #strangers: JoinRate;
  readonly #view: MasterView;
  /** By node: the ranges and reports that gave it no task about its replicas. */
  readonly #settled = new Map<
    number,
    { readonly ranges: readonly RangeDescriptor[]; readonly reports: readonly RangeReport[] }
  >();

  constructor(deps: MasterServiceDeps) {
    this.#deps = deps;
    this.#view = new MasterView(deps);
    this.#strangers = new JoinRate(deps.clock.monotonicMs());
  }

  register(registry: RpcRegistry): void {
    const { leading, notLeader, revisions } = this.#deps;
    registry.handle(masterJoin, (request, { caller }, done) => {
      const refused = this.#joinRefusal(request, caller);
      if (refused === undefined) this.#join(request, caller, done);
      else done(refused, undefined);
    });
    registry.handle(masterHeartbeat, (heartbeat, { caller }, done) => {
      const reply = this.#heartbeat(heartbeat, caller);
      if (reply instanceof ServiceError) done(reply, undefined);
      else done(undefined, reply);
    });
    registry.handle(masterRangeChanged, (descriptor, _context, done) => this.#rangeChanged(descriptor, done));
    registry.handle(masterAskSplit, (request, _context, done) => this.#askSplit(request, done));
    registry.handle(masterDrawRevisions, (request, _context, done) =>
      leading() ? revisions.draw(request, done) : done(notLeader(), undefined),
    );
    registry.handle(masterStrikeOff, ({ nodeIds }, _context, done) =>
      leading() ? strikeOff(nodeIds, this.#deps, done) : done(notLeader(), undefined),
    );
    registry.handle(masterView, (_request, _context, done) =>
      leading() ? done(undefined, this.view()) : done(notLeader(), undefined),
    );
  }

  /** SV2, SV3. For registered nodes the state decides. */
  #joinRefusal({ nodeId, descriptor }: JoinRequest, caller: Caller): ServiceError | undefined {
    const { state } = this.#deps;
    if (nodeId !== 0) {
      if (!presents(caller, nodeId)) {
        return new ServiceError('UNAVAILABLE', `the caller has not proved that it is node ${nodeId}`);
      }
      if (state.node(nodeId) !== undefined) return undefined;
      if (caller.kind === 'joiner' && nodeId < FIRST_ALLOCATED_NODE) {
        const message = `node ${nodeId} is not registered, and the caller is not verified as a founding member`;
        return new ServiceError('UNAVAILABLE', message);
      }
    }
    if (caller.kind === 'joiner' && caller.certificate !== undefined && !certifies(caller.certificate, descriptor)) {
      const message = `the certificate is for ${shownNames(caller.certificate)}, and not for node ${descriptor.name}`;
      return new ServiceError('UNAUTHENTICATED', message);
    }
    if (state.nodes().some(({ incarnation }) => incarnation === descriptor.incarnation)) return undefined;
    return this.#nameRefusal(nodeId, descriptor.name) ?? this.#countRefusal();
  }

  /** SV2. The name of a removed member may be used again. */
  #nameRefusal(nodeId: number, name: string): ServiceError | undefined {
    const { founderNames, state } = this.#deps;
    const isOwn = nodeId !== 0 && founderNames[nodeId - 1] === name;
    if (isOwn || !founderNames.includes(name) || state.nodes().some((node) => node.name === name)) return undefined;
    return new ServiceError('NODE_CONFLICT', `the name "${name}" belongs to a founding member; choose another --name`);
  }

  /** SV3. Registrations in progress count: a caller may send any number before the first one is applied. */
  #countRefusal(): ServiceError | undefined {
    const { state } = this.#deps;
    const registered = state.nodes().filter((node) => !state.isRemoved(node.nodeId)).length;
    const there = registered + this.#registering;
    if (there < NODES_MAX) return undefined;
    const message = `the cluster has ${there} nodes, the maximum is ${NODES_MAX}; remove nodes that are gone`;
    return new ServiceError('RESOURCE_EXHAUSTED', message);
  }

  #join(request: JoinRequest, caller: Caller, done: Done<JoinReply>): void {
    const { clusterId, confirm, leading, notLeader, state } = this.#deps;
    if (!leading()) return done(notLeader(), undefined);
    const descriptor: NodeDescriptor = { ...request.descriptor, nodeId: request.nodeId };
    const isNews = state.registrationConflict(descriptor) === undefined && this.#registered(descriptor) === undefined;
    if (isNews) return this.#registerNode(descriptor, caller, done);
    confirm((error) => {
      const refused = error ?? state.registrationConflict(descriptor); // SV1
      if (refused !== undefined) return done(refused, undefined);
      const nodeId = this.#registered(descriptor);
      if (nodeId === undefined) this.#registerNode(descriptor, caller, done);
      else done(undefined, { nodeId, clusterId });
    });
  }

  /** SV4. Returns the id of the node, if its whole descriptor is already registered. */
  #registered(descriptor: NodeDescriptor): number | undefined {
    const known = this.#deps.state.nodes().find(({ incarnation }) => incarnation === descriptor.incarnation);
    if (known === undefined) return undefined;
    const nodeId = descriptor.nodeId === 0 ? known.nodeId : descriptor.nodeId;
    return sameNodeDescriptor(known, { ...descriptor, nodeId }) ? nodeId : undefined;
  }

  #registerNode(descriptor: NodeDescriptor, caller: Caller, done: Done<JoinReply>): void {
    const { clock, clusterId, logger, notLeader, propose } = this.#deps;
    const isStranger = caller.kind === 'joiner';
    const refused = isStranger ? this.#strangers.begin(clock.monotonicMs()) : undefined;
    if (refused !== undefined) return done(refused, undefined);
    this.#registering += 1;
    propose({ type: 'registerNode', descriptor }, (error, result) => {
      this.#registering -= 1;
      if (isStranger) this.#strangers.ended();
      if (result?.type !== 'registerNode') return done(error ?? notLeader(), undefined);
      logger.info({ node: result.nodeId, name: descriptor.name }, 'node registered');
      done(undefined, { nodeId: result.nodeId, clusterId });
    });
  }

  #rangeChanged(descriptor: RangeDescriptor, done: Done<undefined>): void {
    const { leading, notLeader, propose, state } = this.#deps;
    if (!leading()) return done(notLeader(), undefined);
    const news = state.newsOf(descriptor);
    if (news === undefined) return done(undefined, undefined);
    const type = news === 'all' ? 'describeRange' : 'changeRange';
    propose({ type, descriptor }, (error) => done(error, undefined));
  }

  #askSplit(request: AskSplitRequest, done: Done<AskSplitReply>): void {
    const { leading, notLeader, propose } = this.#deps;
    const care = this.#deps.care();
    if (!leading() || care === undefined) return done(notLeader(), undefined);
    const refused = care.splitRefusal(request);
    if (refused !== undefined) return done(refused, undefined);
    const byHand = request.cause === 'admin';
    propose({ type: 'askSplit', descriptor: request.range, byHand }, (error, result) => {
      if (result?.type !== 'askSplit') return done(error ?? notLeader(), undefined);
      care.splitBegan(request);
      const { childId, replicas } = result.asked;
      done(undefined, { childId, replicas: replicas.map(({ nodeId, replicaId }) => ({ nodeId, replicaId })) });
    });
  }

  #heartbeat({ minute, ...heartbeat }: NodeHeartbeat, caller: Caller): NodeHeartbeatReply | ServiceError {
    const { clock, firstRange, founding, history, orders, reports, settings, state } = this.#deps;
    const clocks = { nodeId: this.#deps.nodeId, wallMs: clock.wallMs(), monotonicMs: clock.monotonicMs() };
    const refused = this.#senderRefusal(heartbeat, caller) ?? this.#heartbeatRefusal(heartbeat);
    if (refused !== undefined) return refused;
    const { nodeId, viewVersion } = heartbeat;
    if (!reports.heard(heartbeat, clock.monotonicMs())) {
      return new ServiceError(
        'INVALID_ARGUMENT',
        'this master does not know the earlier reports of the node: send all',
      );
    }
    if (minute !== undefined) history.reported(nodeId, minute, clocks.wallMs);
    firstRange.look();
    for (const result of heartbeat.results) orders.ended(result);
    const own = masterTask(state, heartbeat) ?? [];
    const tasks = [...this.#replicaTasks(nodeId), ...this.#orderTasks(nodeId)].concat(own);
    const conditions = this.#deps.health.told(nodeId);
    const isNewer = heartbeat.authRevision < state.auth.revision;
    const auth = isNewer && founding.isAuthTold ? state.auth : undefined;
    this.#deps.rollout.look();
    const { view, version } = this.#view.current();
    return {
      ...{ tasks, incarnations: state.incarnations(), splits: splitPolicyOf(settings()), conditions },
      auth,
      ...{ view: viewVersion === version ? undefined : view, viewVersion: version },
      clocks,
      clusterVersion: state.clusterVersion,
    };
  }

  /** They follow from the ranges that the masters know and from the node's reports: without a change, none is new. */
  #replicaTasks(nodeId: number): readonly NodeTask[] {
    const { reports, state } = this.#deps;
    const heartbeat = reports.last(nodeId);
    if (heartbeat === undefined) return [];
    const settled = this.#settled.get(nodeId);
    const ranges = state.ranges();
    if (settled?.ranges === ranges && settled.reports === heartbeat.ranges) return [];
    const tasks = replicaTasks(state, heartbeat);
    if (tasks.length === 0) this.#settled.set(nodeId, { ranges, reports: heartbeat.ranges });
    return tasks;
  }

  /** SV5. */
  #senderRefusal({ nodeId }: NodeHeartbeat, caller: Caller): ServiceError | undefined {
    const sender = caller.kind === 'local' ? this.#deps.nodeId : caller.kind === 'node' ? caller.nodeId : 0;
    if (sender === nodeId) return undefined;
    this.#deps.logger.warn({ sender, claims: nodeId }, 'refused a heartbeat that names another node than its sender');
    return new ServiceError('INVALID_ARGUMENT', `node ${sender} sent a heartbeat of node ${nodeId}`);
  }

  #heartbeatRefusal({ nodeId, incarnation }: NodeHeartbeat): ServiceError | undefined {
    const { leading, notLeader, state } = this.#deps;
    if (!leading()) return notLeader();
    const node = state.node(nodeId);
    if (node === undefined) {
      return new ServiceError('INVALID_ARGUMENT', `node ${nodeId} has not joined`, { details: { join: true } });
    }
    if (state.isRemoved(nodeId)) return state.removedConflict(nodeId);
    if (node.incarnation === incarnation) return undefined;
    return new ServiceError('NODE_CONFLICT', `node id ${nodeId} belongs to another data directory`);
  }

  #orderTasks(nodeId: number): readonly NodeTask[] {
    const { care, orders, reports, state } = this.#deps;
    return reports.toTake(nodeId, care()?.rangesInWork() ?? []).flatMap((report) => {
      const range = state.range(report.rangeId);
      if (report.lead === undefined || (range !== undefined && isSameEpoch(range.epoch, report.epoch))) {
        reports.taken(nodeId, report.rangeId);
      }
      const order = range === undefined ? undefined : orders.reported(range, report);
      return order === undefined ? [] : [{ type: 'order', order }];
    });
  }

  view(): ClusterView {
    return this.#view.current().view;
  }
}

function isSameEpoch(a: Epoch, b: Epoch): boolean {
  return a.confVersion === b.confVersion && a.version === b.version;
}

/** SV2. */
function presents(caller: Caller, nodeId: number): boolean {
  switch (caller.kind) {
    case 'local':
      return true;
    case 'node':
      return caller.nodeId === nodeId;
    case 'joiner':
      return caller.claims === nodeId;
    case 'client':
      return false;
    default:
      return unreachable(caller);
  }
}
