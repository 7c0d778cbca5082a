/**
 * Three nodes, each with a master and with replicas of three ranges that the master numbers. Masters, ranges and
 * drawers are the product's. Groups and calls are simulated, and do everything that they may do (sim-group.ts). One
 * seed gives one run.
 */
import { assert, nodeClock, SeededRandom, ServiceError, silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { RevisionDrawer } from '@remora/dataserver';
import { Master, MasterFinder } from '@remora/master';
import {
  type CallHandle,
  createLocalChannel,
  createRpcRegistry,
  type Done,
  type DrawRevisionsReply,
  kvRoutingKey,
  type Method,
  masterDrawRevisions,
  type RangeDescriptor,
  type RpcChannel,
} from '@remora/protocol';
import { confOf } from '@remora/raft';
import { StoreHeat } from '../../../packages/dataserver/src/heat/store-heat.ts';
import { type Installer, NO_ENDINGS } from '../../../packages/dataserver/src/install/installer.ts';
import { RangeReplica } from '../../../packages/dataserver/src/range/range-replica.ts';
import type { OnApplied } from '../../../packages/dataserver/src/range/requests/applied-command.ts';
import { stateKey } from '../../../packages/dataserver/src/state/keys.ts';
import { encodeRangeMeta } from '../../../packages/dataserver/src/state/meta-codec.ts';
import { NEVER_MERGED } from '../../../packages/dataserver/src/state/reshape/merging.ts';
import type { TransactionPeers } from '../../../packages/dataserver/src/transactions/intent-resolver.ts';
import { NO_OTHER_RANGES } from '../../../packages/dataserver/test/support/no-other-ranges.ts';
import { memoryEngine } from '../../../packages/dataserver/test/support/state-bed.ts';
import { SimGroup } from './sim-group.ts';

export const NODES: readonly number[] = [1, 2, 3];
const CALL_TIMEOUT_MS = 250;
/** For replicas whose ranges do not change. */
const NOTHING_AROUND = {
  splitPolicy: () => undefined,
  watchRingShare: () => 10_000,
  ...{ sharing: () => undefined, swallowed: () => NO_ENDINGS, onLeft: () => {}, onSplit: async () => {} },
  following: () => [],
  neighbours: {
    source(): never {
      throw new Error('no ranges are merged here');
    },
    merged: () => {},
  },
};
/** Small, so that the bound is raised all the time. */
const WINDOW = 8;

/**
 * A range that covers `[start, end)` of the plain keys. `counted` is the number that it had counted itself before the
 * master numbered it.
 */
function rangeOf(rangeId: number, start: string, end: string, counted: number) {
  const bound = (key: string): Uint8Array => (key === '' ? new Uint8Array(0) : kvRoutingKey(Buffer.from(key)));
  const replicas = NODES.map((nodeId) => ({ replicaId: nodeId, nodeId, type: 'voter' as const }));
  const epoch = { confVersion: 1, version: 2 };
  const descriptor: RangeDescriptor = {
    ...{ rangeId, start: bound(start), end: bound(end), epoch, replicas },
    revisionSource: 'master',
  };
  return { descriptor, counted, first: start === '' ? 'a' : start };
}

export const RANGES = [rangeOf(2, '', 'h', 1), rangeOf(3, 'h', 'p', 1), rangeOf(4, 'p', '', 700)];

interface SimNode {
  readonly id: number;
  readonly finder: MasterFinder;
  readonly replicas: ReadonlyMap<number, RangeReplica>;
  master: Master;
  registry: ReturnType<typeof createRpcRegistry>;
  saved: Uint8Array | undefined;
}

const realClock = nodeClock();

export class World {
  readonly clock = new ManualClock();
  readonly random: SeededRandom;
  readonly masters: SimGroup;
  readonly ranges: ReadonlyMap<number, SimGroup>;
  readonly nodes: ReadonlyMap<number, SimNode>;
  calm = false;
  lostCalls = 0;
  restarts = 0;

  /** `peers`: how the ranges of a node resolve what coordinators have left. */
  constructor(seed: number, onApplied: OnApplied, peers?: TransactionPeers) {
    this.random = new SeededRandom(seed);
    const { clock, random } = this;
    this.masters = new SimGroup(1, NODES, { clock, random });
    this.ranges = new Map(
      RANGES.map(({ descriptor: { rangeId } }) => [rangeId, new SimGroup(rangeId, NODES, { clock, random })]),
    );
    this.nodes = new Map(
      NODES.map((id) => [id, this.#node(id, { onApplied, ...(peers && { transactionPeers: peers }) })]),
    );
    for (const group of this.#groups()) this.#run(group);
  }

  node(id: number): SimNode {
    const node = this.nodes.get(id);
    assert(node !== undefined, `there is no node ${id}`);
    return node;
  }

  /** No faults from now on: each group gets a stable leader, and everything must come to an end. */
  calmDown(): void {
    this.calm = true;
    for (const group of this.#groups()) group.elect(group.member(1 + this.random.int(NODES.length)));
  }

  anyNode(): SimNode {
    return this.node(1 + this.random.int(NODES.length));
  }

  #groups(): readonly SimGroup[] {
    return [this.masters, ...this.ranges.values()];
  }

  // -------------------------------------------------------------------------------------------- nodes

  #node(id: number, given: { readonly onApplied: OnApplied; readonly transactionPeers?: TransactionPeers }): SimNode {
    const { clock, random } = this;
    const dialer = { channel: (to: number) => this.#channel(to), channelTo: () => this.#channel(1) };
    const finder = new MasterFinder({ clock, dialer, seeds: [], masters: NODES, reachable: () => true });
    const drawer = new RevisionDrawer({
      ...{ clock, random, logger: silentLogger },
      call: (request, done) => finder.call(masterDrawRevisions, request, { timeoutMs: CALL_TIMEOUT_MS }, done),
    });
    const engine = memoryEngine(clock);
    const replicas = new Map<number, RangeReplica>();
    for (const { descriptor, counted } of RANGES) {
      const conf = confOf(NODES);
      const begun = { applied: { index: 0, term: 0 }, appliedAhead: 0, conf, descriptor, revision: counted };
      const nothing = {
        compactRevision: 0,
        rangeTimeMs: 1,
        wallMs: 0,
        keys: 0,
        bytes: 0,
        estimatedSince: 0,
        merging: NEVER_MERGED,
      };
      engine.put(stateKey(descriptor.rangeId), encodeRangeMeta({ ...begun, ...nothing }));
      const options = {
        ...{ watchRingBytesMax: 10_000, compactionRetentionMs: 0, outcomeBytesMax: 10_000_000 },
        timeCarryMs: 100_000,
      };
      const installer = {} as Installer; // No member is ever sent a snapshot.
      const others = NO_OTHER_RANGES;
      const checkpointer = { run: async () => {} };
      const deps = {
        engine,
        clock,
        logger: silentLogger,
        nodeId: id,
        options,
        installer,
        drawer,
        authRevision: () => 0,
        others,
        checkpointer,
        ...given,
      };
      const replica = new RangeReplica({ ...deps, ...NOTHING_AROUND, heat: new StoreHeat() }, descriptor, conf);
      const member = this.#group(descriptor.rangeId).member(id);
      replica.attach(member);
      member.restart(replica, 0);
      replicas.set(descriptor.rangeId, replica);
    }
    return { id, finder, replicas, saved: undefined, ...this.#startMaster(id, () => undefined) };
  }

  #group(rangeId: number): SimGroup {
    const group = this.ranges.get(rangeId);
    assert(group !== undefined, `there is no range ${rangeId}`);
    return group;
  }

  #startMaster(id: number, saved: () => Uint8Array | undefined) {
    const registry = createRpcRegistry();
    const member = this.masters.member(id);
    const master = new Master(
      {
        ...{ nodeId: id, clusterId: 'sim', shownClusterId: 'shown', clock: this.clock, logger: silentLogger },
        options: { replicas: 9, revisionWindow: WINDOW },
        storage: {
          load: saved,
          save: (bytes) => {
            this.node(id).saved = bytes;
          },
        },
        checkpoint: async () => {},
        onLeft() {},
      },
      confOf(NODES),
    );
    master.attach(member);
    master.register(registry);
    member.restart(master, master.state.applied.index);
    return { master, registry };
  }

  /** A master's process ends and restarts from its last checkpoint and the log. */
  restartMaster(): void {
    const node = this.anyNode();
    node.master.stop();
    Object.assign(
      node,
      this.#startMaster(node.id, () => node.saved),
    );
    this.restarts++;
  }

  // -------------------------------------------------------------------------------------------- calls

  /** Requests and answers are delayed or lost independently. */
  #channel(to: number): RpcChannel {
    const call = <Request, Reply>(
      method: Method<Request, Reply>,
      request: Request,
      { timeoutMs }: { readonly timeoutMs: number },
      done: Done<Reply>,
    ): CallHandle => {
      let over = false;
      const finish: Done<Reply> = (error, reply) => {
        if (over) return;
        over = true;
        done(error, reply);
      };
      this.clock.setTimer(timeoutMs, () => finish(new ServiceError('UNKNOWN_OUTCOME', 'no answer in time'), undefined));
      this.deliver(() => {
        const channel = createLocalChannel({ registry: this.node(to).registry, clock: this.clock });
        channel.call(method, request, { timeoutMs: 10_000 }, (error, reply) =>
          this.deliver(() => finish(error, reply)),
        );
      });
      return { cancel: () => {} };
    };
    return { call, openStream: () => assert(false, 'no stream is opened') as never };
  }

  /** Delivers over a network: soon, late or never. */
  deliver(fn: () => void): void {
    if (!this.calm && this.random.int(12) === 0) this.lostCalls++;
    else this.clock.setTimer(!this.calm && this.random.int(6) === 0 ? this.random.int(240) : this.random.int(4), fn);
  }

  /** A gateway's request to the master: a revision that is not below any that has been given out. */
  newest(floor: number, done: (error: ServiceError | undefined, reply: DrawRevisionsReply | undefined) => void): void {
    this.anyNode().finder.call(masterDrawRevisions, { floor, draws: [] }, { timeoutMs: CALL_TIMEOUT_MS }, done);
  }

  // -------------------------------------------------------------------------------------------- misfortune

  /** Commits, applies and moves leadership forever. */
  #run(group: SimGroup): void {
    group.elect(group.member(1 + this.random.int(NODES.length)));
    const every = (ms: number, fn: () => void): void => {
      const again = (): void => {
        fn();
        this.clock.setTimer(1 + this.random.int(ms), again);
      };
      this.clock.setTimer(1, again);
    };
    every(6, () => group.commit());
    for (const member of group.members) every(6, () => member.apply());
    for (const member of group.members) every(this.#hearMs(group), () => member.hear());
    every(200, () => this.#groupMisfortune(group));
    if (group === this.masters) every(500, () => this.#masterMisfortune());
  }

  #groupMisfortune(group: SimGroup): void {
    if (this.calm) return;
    if (this.random.int(4) === 0) group.stalledUntilMs = this.clock.monotonicMs() + this.random.int(60);
    if (this.random.int(2) === 0) return;
    const before = group.leader;
    group.elect(group.member(1 + this.random.int(NODES.length)));
    if (before === undefined || this.random.int(2) === 0) return;
    // The previous leader leads again before it has forgotten its work.
    this.clock.setTimer(40 + this.random.int(120), () => {
      if (!this.calm) group.elect(before);
    });
  }

  #hearMs(group: SimGroup): number {
    return group === this.masters ? 120 : 200;
  }

  #masterMisfortune(): void {
    if (this.random.int(2) === 0) this.anyNode().master.stage();
    if (!this.calm && this.random.int(4) === 0) this.restartMaster();
  }

  /** Lets time pass, and lets promises settle meanwhile. */
  async run(ms: number): Promise<void> {
    const endMs = this.clock.monotonicMs() + ms;
    for (;;) {
      const next = this.clock.nextTimerMs();
      if (next === undefined || next > endMs) break;
      this.clock.fireNext();
      this.clock.runImmediates();
      await settle();
      this.clock.runImmediates();
    }
  }
}

/** Settles promises that depend only on each other. */
function settle(): Promise<void> {
  return new Promise((resolve) => realClock.setImmediate(resolve));
}
