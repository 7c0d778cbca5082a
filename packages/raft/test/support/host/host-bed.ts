/** A cluster of hosts on a virtual clock, for tests: real hosts and cores over an in-memory network, log and state. */
import { assert, nodeClock, SeededRandom } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { ConfChange } from '../../../src/core/membership/conf-change.ts';
import type { ConfState, Entry, LogPosition, Role } from '../../../src/core/types.ts';
import { createRaftHost, type NodeRaftHost, type RaftHostOptions } from '../../../src/multi/host/host.ts';
import type { HostOptions } from '../../../src/multi/host/options.ts';
import type { Group } from '../../../src/multi/host-api.ts';
import type {
  GroupId,
  NodeId,
  RecoveredGroup,
  SnapshotReceiver,
  StateMachine,
  StateMachineSnapshot,
} from '../../../src/multi/ports.ts';
import { type LinkFaults, LocalNetwork } from '../../../src/testing/local-network.ts';
import { BedLog } from './held-log.ts';
import { PausableClock } from './host-clock.ts';

/** What a state machine of the bed keeps: enough to see that replicas agree and that nothing was applied twice. */
interface CounterState {
  readonly applied: LogPosition;
  readonly conf: ConfState;
  /** The data of all entries applied, in order; empty ones left out. */
  readonly history: readonly string[];
}

/** Appends the text of each entry to a history. Durable only by `checkpoint` and by an installed snapshot. */
export class Counter implements StateMachine {
  durable: CounterState;
  applied: LogPosition;
  conf: ConfState;
  history: string[];
  readonly roles: { readonly role: Role; readonly term: number; readonly leader: number }[] = [];
  applying = 0;
  /** While set, each `apply` waits for it. */
  gate: Promise<void> | undefined;
  snapshotChunks = 3;
  installGate: Promise<void> | undefined;
  installs = 0;
  aborts = 0;
  /** The veto of membership changes. */
  admits: (change: ConfChange) => boolean = () => true;
  /** Memberships after each change applied, and how much was applied by then. */
  readonly confs: { readonly conf: ConfState; readonly index: number }[] = [];

  constructor(durable: CounterState) {
    this.durable = durable;
    this.applied = durable.applied;
    this.conf = durable.conf;
    this.history = durable.history.slice();
  }

  apply(entries: readonly Entry[], conf: ConfState): void | Promise<void> {
    assert(this.applying === 0, 'calls of one group are serial');
    if (conf !== this.conf) this.confs.push({ conf, index: entries[0]?.index ?? 0 });
    this.conf = conf;
    for (const entry of entries) {
      assert(entry.index === this.applied.index + 1, `entry ${entry.index} follows ${this.applied.index}`);
      this.applied = { index: entry.index, term: entry.term };
      if (entry.type === 'normal' && entry.data.length > 0) this.history.push(Buffer.from(entry.data).toString());
    }
    if (this.gate === undefined) return;
    this.applying++;
    return this.gate.then(() => {
      this.applying--;
    });
  }

  admitsConf(change: ConfChange): boolean {
    assert(this.applying === 0, 'calls of one group are serial');
    return this.admits(change);
  }

  roleChanged(change: { readonly role: Role; readonly term: number; readonly leader: number }): void {
    assert(this.applying === 0, 'calls of one group are serial');
    this.roles.push(change);
  }

  checkpoint(): LogPosition {
    this.durable = { applied: this.applied, conf: this.conf, history: this.history.slice() };
    return this.applied;
  }

  snapshot(): StateMachineSnapshot {
    const state: CounterState = { applied: this.applied, conf: this.conf, history: this.history.slice() };
    const bytes = Buffer.from(JSON.stringify(state));
    const size = Math.ceil(bytes.length / this.snapshotChunks);
    async function* chunks(): AsyncIterable<Uint8Array> {
      for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
    }
    return { meta: { ...state.applied, conf: state.conf }, chunks: chunks(), release: () => undefined };
  }

  install(): SnapshotReceiver {
    assert(this.applying === 0, 'calls of one group are serial');
    this.installs++;
    const chunks: Uint8Array[] = [];
    return {
      chunk: async (bytes) => {
        chunks.push(bytes);
      },
      finish: async () => {
        await this.installGate;
        this.durable = JSON.parse(Buffer.concat(chunks).toString());
        this.applied = this.durable.applied;
        this.conf = this.durable.conf;
        this.history = this.durable.history.slice();
      },
      abort: () => {
        this.aborts++;
      },
    };
  }
}

export interface BedNode {
  readonly id: NodeId;
  readonly host: NodeRaftHost;
  readonly clock: PausableClock;
  readonly log: BedLog;
  readonly counters: Map<GroupId, Counter>;
  readonly fatal: unknown[];
}

const flushClock = nodeClock();

export class HostBed {
  readonly clock = new ManualClock();
  readonly random: SeededRandom;
  readonly network: LocalNetwork;
  readonly nodes = new Map<NodeId, BedNode>();
  readonly #options: Partial<HostOptions>;
  readonly #extra: Partial<RaftHostOptions>;
  readonly #rateOf: (node: NodeId) => number;

  constructor(given: {
    readonly seed: number;
    readonly options?: Partial<HostOptions>;
    readonly faults?: Partial<LinkFaults>;
    readonly extra?: Partial<RaftHostOptions>;
    /** How fast each node's clock runs. */
    readonly rateOf?: (node: NodeId) => number;
  }) {
    this.random = new SeededRandom(given.seed);
    this.network = new LocalNetwork({
      clock: this.clock,
      random: this.random,
      faults: { delayMs: 1, ...given.faults },
    });
    this.#options = given.options ?? {};
    this.#extra = given.extra ?? {};
    this.#rateOf = given.rateOf ?? (() => 1);
  }

  /** Starts a node, with the log and the durable states of its predecessor if it ran before. */
  start(id: NodeId): BedNode {
    const before = this.nodes.get(id);
    const log = before?.log ?? new BedLog(this.clock);
    const fatal: unknown[] = [];
    const clock = new PausableClock(this.clock, this.#rateOf(id));
    const host = createRaftHost({
      nodeId: id,
      clock,
      random: this.random,
      log,
      transport: clock.wrap(this.network.transport(id)),
      options: this.#options,
      onFatal: (error) => fatal.push(error),
      ...this.#extra,
    });
    const counters = new Map<GroupId, Counter>();
    for (const [groupId, counter] of before?.counters ?? []) counters.set(groupId, new Counter(counter.durable));
    const node: BedNode = { id, host, clock, log, counters, fatal };
    this.nodes.set(id, node);
    const recovered = log.recovered();
    host.start();
    for (const groupId of counters.keys()) this.#createGroup(node, groupId, recovered.get(groupId));
    return node;
  }

  /** Replicas on each of `on` of a group whose first voters are on `votersOn`. Replica ids are group * 100 + node. */
  addGroup(
    groupId: GroupId,
    on: readonly NodeId[],
    votersOn: readonly NodeId[] = on,
    firstWaitTicks?: (node: NodeId) => number,
  ): void {
    const voters = votersOn.map((node) => replicaOn(groupId, node));
    const conf: ConfState = { voters, votersOutgoing: [], learners: [], learnersNext: [], autoLeave: false };
    for (const id of on) {
      const node = this.node(id);
      node.counters.set(groupId, new Counter({ applied: { index: 0, term: 0 }, conf, history: [] }));
      this.#createGroup(node, groupId, undefined, firstWaitTicks?.(id));
    }
  }

  #createGroup(node: BedNode, groupId: GroupId, recovered: RecoveredGroup | undefined, firstWaitTicks?: number): Group {
    const stateMachine = this.counter(node.id, groupId);
    return node.host.createGroup({
      groupId,
      replicaId: replicaOn(groupId, node.id),
      applied: stateMachine.applied,
      conf: stateMachine.conf,
      stateMachine,
      locate: (replica) => replica % 100,
      ...(recovered !== undefined && { recovered }),
      ...(firstWaitTicks !== undefined && { firstWaitTicks }),
    });
  }

  /** Stops a node as a power cut would: what its log had not synced is gone. */
  async crash(id: NodeId): Promise<void> {
    const node = this.node(id);
    node.log.crash();
    void node.host.stop(); // its last append is never called back
    await this.flush();
  }

  node(id: NodeId): BedNode {
    const node = this.nodes.get(id);
    assert(node !== undefined, `node ${id} was not started`);
    return node;
  }

  group(id: NodeId, groupId: GroupId): Group {
    const group = this.node(id).host.group(groupId);
    assert(group !== undefined, `node ${id} has no group ${groupId}`);
    return group;
  }

  counter(id: NodeId, groupId: GroupId): Counter {
    const counter = this.node(id).counters.get(groupId);
    assert(counter !== undefined, `node ${id} has no group ${groupId}`);
    return counter;
  }

  /** The node that leads the group and knows its state to be current. */
  leaderOf(groupId: GroupId): NodeId | undefined {
    const leaders = [...this.nodes.keys()].filter((id) => this.node(id).host.group(groupId)?.ready === true);
    return leaders.toSorted((a, b) => this.group(b, groupId).term - this.group(a, groupId).term)[0];
  }

  /** Lets `ms` of virtual time pass, with promises settling on the way. */
  async run(ms: number): Promise<void> {
    for (let left = ms; left > 0; left--) {
      this.clock.advance(Math.min(1, left));
      await this.flush();
    }
  }

  /** Runs until `met`; fails with `what` when that takes more than `withinMs` of virtual time. */
  async until(what: string, met: () => boolean, withinMs = 20_000): Promise<void> {
    const deadline = this.clock.monotonicMs() + withinMs;
    while (!met()) {
      assert(this.clock.monotonicMs() < deadline, `not in ${withinMs} ms: ${what}`);
      await this.run(1);
    }
  }

  async leader(groupId: GroupId): Promise<NodeId> {
    await this.until(`group ${groupId} has a leader`, () => this.leaderOf(groupId) !== undefined);
    const leader = this.leaderOf(groupId);
    assert(leader !== undefined, 'there is a leader');
    return leader;
  }

  /** Proposes at the leader, again after a refusal, until the text is applied there. */
  async write(groupId: GroupId, text: string): Promise<void> {
    const deadline = this.clock.monotonicMs() + 20_000;
    for (;;) {
      assert(this.clock.monotonicMs() < deadline, `'${text}' was not committed`);
      const leader = await this.leader(groupId);
      const group = this.group(leader, groupId);
      const result = group.propose(Buffer.from(text));
      if ('refused' in result) {
        await this.run(10);
        continue;
      }
      for (let waited = 0; waited < 2_000; waited++) {
        if (this.counter(leader, groupId).history.includes(text)) return;
        if (group.term !== result.term || this.node(leader).host.group(groupId) !== group) break;
        await this.run(1);
      }
    }
  }

  /** Proposes a membership change at the leader, again as long as the leader's membership is not as wanted. */
  async change(groupId: GroupId, change: ConfChange, done: (conf: ConfState) => boolean): Promise<void> {
    await this.until(`the membership change ${JSON.stringify(change.steps)}`, () => {
      const leader = this.leaderOf(groupId);
      if (leader === undefined) return false;
      const group = this.group(leader, groupId);
      if (done(group.status().conf)) return true;
      group.proposeConf(change);
      return false;
    });
  }

  /** A real turn of the event loop: promises settle, virtual time stands still. */
  /** Ends the group's replica at a node. */
  async removeGroup(id: NodeId, groupId: GroupId): Promise<void> {
    let removed = false;
    const removal = this.node(id)
      .host.removeGroup(groupId)
      .then(() => {
        removed = true;
      });
    this.node(id).counters.delete(groupId);
    await this.until('the replica is removed', () => removed);
    await removal;
  }

  async flush(): Promise<void> {
    await new Promise<void>((resolve) => flushClock.setImmediate(resolve));
    this.clock.runImmediates();
  }

  /** The host that failed, if any: no test ends with one. */
  fatal(): unknown[] {
    return [...this.nodes.values()].flatMap((node) => node.fatal);
  }
}

export function replicaOn(groupId: GroupId, node: NodeId): number {
  return groupId * 100 + node;
}
