/** A simulated cluster: its nodes, its clients, the network between them, and the faults that befall them. */
import { assert, type Bytes, SeededRandom, spanContains, type VersionRange } from '@remora/base';
import type { RangeDescriptor } from '@remora/protocol';
import { MASTER_GROUP } from '@remora/raft';
import { LocalNetwork } from '../../../packages/raft/src/testing/local-network.ts';
import type { Change, Finding } from '../../checkers/index.ts';
import { SimLoop } from '../common/env/loop.ts';
import { FaultTimeline } from '../common/faults/timeline.ts';
import { hashOfBytes, hashOfText, seedOf } from '../common/hash.ts';
import { NetworkFaults } from '../common/network.ts';
import { Observer } from '../common/raft/observer.ts';
import { Trace } from '../common/trace.ts';
import { Violation } from '../common/violation.ts';
import { AdminUser } from './admin-user.ts';
import { Answers } from './checks/answers.ts';
import { AppliedCommands } from './checks/applied-commands.ts';
import { Outages } from './checks/outages.ts';
import { Owners } from './checks/owners.ts';
import { RangeChanges } from './checks/range-changes.ts';
import { StateWatch } from './checks/state-watch.ts';
import { LinkNetwork } from './env/link-network.ts';
import { PeerNetwork } from './env/peer-network.ts';
import { KnownRevisions } from './known-revisions.ts';
import { clientAddress } from './machine.ts';
import { Members } from './members.ts';
import { Moves } from './moves.ts';
import { SimNode } from './node.ts';
import type { ClusterOptions } from './options.ts';
import { Placement } from './placement.ts';
import { Releases } from './releases.ts';
import { faultOf } from './schedule.ts';
import { type ClientLife, SimClient } from './sdk-client.ts';
import { FIRST_RANGE, MACHINES_MAX } from './topology.ts';
import { UserAdmin } from './user-admin.ts';
import { workloadsOf } from './workloads/index.ts';
import { probedUsers, STRANGERS } from './workloads/rights.ts';
import { newCounts, type OperationCounts, type OperationEnd, type Workload } from './workloads/workload.ts';

/** The operators' part of everything that a seed decides. */
const ADMIN = 0xad;
/** The part of the administrator of users. */
const USERS = 0x05e5;
/** The part of releases. */
const RELEASES = 0x4e1e;
/** Settings for masters that schedule: the time is short. */
const QUICK: readonly (readonly [string, string])[] = [
  ['down-after', '8s'],
  ['node-settle', '2s'],
  ['move-cooldown', '2s'],
  ['retry-after', '5s'],
];

/** Clients' ids begin here. */
const FIRST_CLIENT = MACHINES_MAX + 1;

export class World {
  readonly seed: number;
  readonly options: ClusterOptions;
  readonly loop = new SimLoop();
  readonly trace = new Trace(() => this.loop.monotonicMs());
  readonly network: NetworkFaults;
  readonly links: LinkNetwork;
  readonly nodes: readonly SimNode[];
  readonly clients: readonly SimClient[];
  readonly workloads: readonly Workload[];
  readonly observer = new Observer({
    trace: this.trace,
    node: (machineId) => this.nodes[machineId - 1],
    isLost: ({ groupId, replicaId }) => this.members.isLost(groupId, replicaId),
    isHomeLost: (groupId, replicaId) => this.members.isHomeLost(this.nodes, groupId, replicaId),
    onAlone: (groupId, index) => this.applied.lost(groupId, index),
    fail: (error) => this.fail(error),
  });
  readonly applied = new AppliedCommands((sourceId) => this.observer.over(sourceId));
  readonly answers: Answers;
  readonly owners = new Owners(STRANGERS, (error) => this.fail(error));
  readonly states = new StateWatch(this);
  readonly outages = new Outages(this);
  readonly counts: OperationCounts = newCounts();
  readonly faults = new FaultTimeline({
    loop: this.loop,
    trace: this.trace,
    begin: (event) => faultOf(event.kind).begin(this, event),
  });
  readonly members = new Members({
    groupIds: [MASTER_GROUP, FIRST_RANGE],
    leaderOf: (groupId) => this.leaderOf(groupId),
    moving: () => this.moves.inFlight,
    steered: () => (this.options.steered ? this.placement.ranges : undefined),
  });
  readonly moves = new Moves({ loop: this.loop, nodes: () => this.nodes });
  readonly placement = new Placement(this);
  readonly admin: AdminUser;
  readonly users: UserAdmin;
  readonly changes = new RangeChanges(this);
  /** In runs with two releases. */
  readonly releases: Releases | undefined;
  /** Nodes that are asked to give everything up, by their ids. */
  readonly leaving = new Set<number>();
  /** The first failure. */
  failure: unknown;
  /** Clients start nothing new. */
  resting = false;
  /** The nodes are stopping: none is started any more. */
  over = false;
  readonly revisions: KnownRevisions;
  readonly #listeners: ((change: Change) => void)[] = [];
  readonly #onRequest = new Set<(gateway: SimNode) => void>();
  readonly #onTransaction = new Set<(gateway: SimNode) => void>();

  constructor(seed: number, options: ClusterOptions) {
    this.seed = seed;
    this.options = options;
    const machineIds = options.machines.map(({ id }) => id);
    assert(Math.max(...machineIds) < FIRST_CLIENT, 'ids of machines and clients differ');
    const clientIds = Array.from({ length: options.clients }, (_, i) => FIRST_CLIENT + i);
    const { loop, trace } = this;
    this.revisions = new KnownRevisions(() => loop.monotonicMs(), {
      retentionMs: options.tuning.ranges?.compactionRetentionMs ?? 0,
      oneRange: !options.steered,
    });
    this.answers = new Answers(this.applied, { oneRange: !options.steered, fail: (error) => this.fail(error) });
    this.admin = new AdminUser({
      ...{ loop, random: new SeededRandom(seedOf(seed, ADMIN)) },
      nodes: () => this.nodes,
      fail: (error) => this.fail(error),
    });
    this.users = new UserAdmin({
      ...{ loop, random: new SeededRandom(seedOf(seed, USERS)) },
      nodes: () => this.nodes,
      fail: (error) => this.fail(error),
    });
    const base = healthyLinks(options);
    const network = new LocalNetwork({ clock: loop, random: new SeededRandom(seedOf(seed, 1)), faults: base });
    this.network = new NetworkFaults(network, [...machineIds, ...clientIds], base);
    const faultsOf = (from: number, to: number) => this.network.faultsOf(from, to);
    const peers = new PeerNetwork(network, faultsOf);
    this.links = new LinkNetwork({
      loop,
      random: new SeededRandom(seedOf(seed, 2)),
      faultsOf,
      onFrame: (from, to, frame) => {
        trace.add('frame', from, to, frame.length, hashOfBytes(frame));
        if (from >= FIRST_CLIENT) this.#requested(to);
      },
    });
    const { links, observer, applied, answers, owners } = this;
    const common = { seed, loop, trace, links, fail: (error: unknown) => this.fail(error) };
    const onTransaction = (node: SimNode): void => tellOnce(this.#onTransaction, node);
    const unusable = (node: SimNode): void => this.#unusable(node);
    this.releases = options.upgraded ? new Releases(this, new SeededRandom(seedOf(seed, RELEASES))) : undefined;
    const nextVersions = (): VersionRange | undefined => this.releases?.next();
    this.nodes = options.machines.map(
      (machine) =>
        new SimNode({
          ...common,
          machine,
          options,
          peers,
          observer,
          applied,
          answers,
          owners,
          unusable,
          nextVersions,
          onTransaction,
        }),
    );
    const endpoints = options.machines.filter(({ roles }) => roles.includes('gateway')).map(clientAddress);
    this.clients = clientIds.map(
      (id) =>
        new SimClient({
          ...common,
          id,
          endpoints,
          options,
          ended: (life) => this.#ended(life),
        }),
    );
    this.workloads = workloadsOf(seed).map((make) => make(this));
  }

  begin(): void {
    for (const node of this.nodes) if (node.machine.fromStart) node.start();
    if (this.options.authenticated) void this.#addUsers();
    this.#startClients();
    this.states.run();
    this.outages.run();
    this.releases?.run();
    if (!this.options.steered) return;
    this.changes.run();
    for (const [name, value] of QUICK) {
      this.admin.retryUntilAnswered('set', (api, call) => api.setSetting({ name, value }, call));
    }
  }

  async #addUsers(): Promise<void> {
    const clientIds = this.clients.map(({ id }) => id);
    await this.users.setUp(clientIds, probedUsers());
    this.#startClients();
  }

  #startClients(): void {
    for (const client of this.clients) this.startClient(client);
  }

  startClient(client: SimClient): void {
    if (client.running || this.resting || (this.options.authenticated && !this.users.ready)) return;
    client.start(async (life) => {
      await Promise.all(this.workloads.map((workload) => workload.run(life)));
    });
  }

  /** Nanoseconds since the beginning, on the world's clock. */
  nowNs(): number {
    return Math.round(this.loop.monotonicMs() * 1e6);
  }

  /** An operation of a client begins; call the returned function with its result. */
  operation(life: ClientLife, what: string): (end: OperationEnd) => void {
    const { trace, counts } = this;
    trace.add('asked', 0, 0, hashOfText(life.name), hashOfText(what), `${life.name} ${what}`);
    const beganMs = this.loop.monotonicMs();
    const asked = { what, beganMs };
    life.waitsFor.add(asked);
    return (end) => {
      const { how, code } = end;
      life.waitsFor.delete(asked);
      counts[how]++;
      this.outages.ended(life.client.id, beganMs, end);
      if (how === 'done') life.client.answered++;
      const text = `${life.name} ${what} ${how} ${code ?? ''}`;
      trace.add('answered', 0, 0, hashOfText(text), 0, text);
    };
  }

  #ended(life: ClientLife): void {
    for (const workload of this.workloads) workload.ended?.(life);
  }

  /** Of all groups, so far. */
  get elections(): number {
    return [...this.observer.groups()].reduce((sum, group) => sum + group.elections, 0);
  }

  /** A write was acknowledged. */
  changed(change: Change): void {
    this.revisions.answered(change.revision);
    for (const listener of this.#listeners) listener(change);
  }

  onChange(listener: (change: Change) => void): void {
    this.#listeners.push(listener);
  }

  /** Called at the next request of a client to a gateway; returns a function that removes the listener. */
  onNextRequest(listener: (gateway: SimNode) => void): () => void {
    this.#onRequest.add(listener);
    return () => this.#onRequest.delete(listener);
  }

  /** Called at the next transaction of a client at a gateway. */
  onNextTransaction(listener: (gateway: SimNode) => void): () => void {
    this.#onTransaction.add(listener);
    return () => this.#onTransaction.delete(listener);
  }

  #requested(machineId: number): void {
    tellOnce(this.#onRequest, this.nodeAt(machineId - 1));
  }

  /** The findings of a check. */
  report(findings: readonly Finding[]): void {
    const [first] = findings;
    if (first !== undefined) this.fail(new Violation(first.property, first.detail));
  }

  /** The run ends with the first failure. */
  fail(error: unknown): void {
    this.failure ??= error;
  }

  // ------------------------------------------------------------------------------------------ who

  nodeAt(i: number): SimNode {
    const node = this.nodes[i % this.nodes.length];
    assert(node !== undefined, 'a world has nodes');
    return node;
  }

  clientAt(i: number): SimClient {
    const client = this.clients[i % this.clients.length];
    assert(client !== undefined, 'a world has clients');
    return client;
  }

  /** A range more often than the master group. */
  groupAt(i: number): number {
    if (i % 4 === 0) return MASTER_GROUP;
    if (!this.options.steered) return FIRST_RANGE;
    const { ranges } = this.placement;
    return ranges[(i >> 2) % Math.max(1, ranges.length)]?.rangeId ?? FIRST_RANGE;
  }

  /** The range with a routing key, as the masters know it. */
  rangeOf(key: Bytes): RangeDescriptor | undefined {
    return this.placement.ranges.find((range) => spanContains(range, key));
  }

  /** The ids of existing leases, as some replicas know them. */
  leaseIds(): readonly bigint[] {
    const replicas = this.nodes.flatMap(({ roles }) => [...(roles?.store?.replicas() ?? [])]);
    const ids = replicas.flatMap(({ state }) => [...state.leases.all()].map(({ id }) => id));
    return [...new Set(ids)].sort();
  }

  /** The id of a leader's node as often as of any: events at leaders matter most. */
  target(drawn: number): number {
    const leader = drawn % 2 === 0 ? this.leaderOf(this.groupAt(drawn >> 1)) : undefined;
    return (leader ?? this.nodeAt(drawn >> 1)).id;
  }

  /** The node that leads the group in the highest term. */
  leaderOf(groupId: number): SimNode | undefined {
    let best: SimNode | undefined;
    for (const node of this.nodes) {
      const group = node.group(groupId);
      if (group?.role === 'leader' && group.term > (best?.group(groupId)?.term ?? 0)) best = node;
    }
    return best;
  }

  /** Whether this node's machine is one that gets suspended; the wall clock of such a machine never jumps back. */
  suspends(nodeId: number): boolean {
    return (nodeId + this.seed) % 2 === 0;
  }

  // ------------------------------------------------------------------------------------------ faults

  /** Starts an ended node again, unless it runs already. */
  startAgain(node: { readonly id: number }): void {
    const mine = this.nodeAt(node.id - 1);
    if (this.over || !mine.down) return;
    if (mine.diskFull) {
      this.loop.setTimer(100, () => this.startAgain(node));
      return;
    }
    mine.start();
  }

  /** A node stopped, and cannot start from the contents of its disk. */
  #unusable(node: SimNode): void {
    if (node.impostor || node.expelled) return this.comeBackAsNew(node);
    if (!this.faults.healed && node.lives % 2 === 0 && this.members.canLose(node)) {
      this.members.lose(node);
      return this.comeBackAsNew(node);
    }
    node.undamage();
    this.startAgain(node);
  }

  /** Whether a decommissioned node has nothing any more, as the masters know. */
  isEmpty(nodeId: number): boolean {
    const { ranges } = this.placement;
    return ranges.length > 0 && ranges.every(({ replicas }) => replicas.every((replica) => replica.nodeId !== nodeId));
  }

  /**
   * A node that has given everything up is removed for good. It starts once more with the contents of its disk, which
   * must be refused; then its machine joins as a new node.
   */
  remove(node: SimNode): void {
    const { nodeId = 0 } = node;
    node.expelled = true;
    this.admin.setDuty({ nodeId, duty: 'removed' }, (error) => {
      this.leaving.delete(nodeId);
      if (node.nodeId !== nodeId) return;
      if (error === undefined) {
        node.end(false);
        this.startAgain(node);
      } else {
        node.expelled = false;
        this.admin.setDuty({ nodeId, duty: 'serving' });
      }
    });
  }

  /** A machine gets an empty disk, and the node on it joins as a new one. */
  comeBackAsNew(node: SimNode): void {
    node.end(false);
    node.loseDisk('new');
    this.startAgain(node);
  }

  /** Ends all faults, for good. */
  heal(): void {
    this.faults.heal();
    this.network.clear();
    for (const node of this.nodes) {
      node.repair();
      this.startAgain(node);
    }
    this.#startClients();
  }
}

function tellOnce<T>(listeners: Set<(of: T) => void>, of: T): void {
  if (listeners.size === 0) return;
  const told = [...listeners];
  listeners.clear();
  for (const listener of told) listener(of);
}

function healthyLinks({ linkDelayMs: delayMs, linkJitterMs: jitterMs }: ClusterOptions) {
  return {
    blocked: false,
    refuses: false,
    dropPerMille: 0,
    duplicatePerMille: 0,
    delayMs,
    jitterMs,
    reorder: false,
    snapshotBreakPerMille: 0,
  };
}
