/**
 * A cluster whose masters schedule, on the simulated machines: without clients, and with no faults except those of a
 * test. It is used to check where replicas and leaders go.
 *
 * SC1. All requests to the masters go to their present leader, with the calls that operators' requests become.
 */
import { assert } from '@remora/base';
import type { Master } from '@remora/master';
import {
  createLocalChannel,
  createRpcRegistry,
  type Done,
  type Method,
  masterSetNodeDuty,
  masterSetSetting,
  masterSteerRange,
  type NodeDuty,
  type RangeChange,
  type RangeDescriptor,
} from '@remora/protocol';
import { ROLES } from '../../../packages/cli/src/node-options.ts';
import { Violation } from '../common/violation.ts';
import type { SimNode } from './node.ts';
import { optionsOf } from './options.ts';
import { heldBy, Placement } from './placement.ts';
import type { MachineOptions } from './topology.ts';
import { World } from './world.ts';

const LOOK_MS = 100;

export interface ScheduledOptions {
  readonly nodes: number;
  readonly later: number;
  readonly mayBecomeMasters?: boolean;
  /** Machines for clients; a test decides what they do. */
  readonly clients?: number;
  /** How often homes are asked whether they still know leases; absent: the product's default. */
  readonly leaseAuditMs?: number;
}

export class ScheduledCluster {
  readonly world: World;
  readonly #placement: Placement;
  readonly #gone = new Set<number>();

  /**
   * The first three machines are the masters, and all store data; the last `later` of them start on demand. With
   * `mayBecomeMasters` the others may become masters.
   */
  constructor(seed: number, { nodes, later, mayBecomeMasters = false, clients = 1, leaseAuditMs }: ScheduledOptions) {
    const drawn = optionsOf(seed);
    const machines: readonly MachineOptions[] = Array.from({ length: nodes + later }, (_, i) => ({
      ...{ id: i + 1, founder: i < 3, fromStart: i < nodes, mayBecomeMaster: mayBecomeMasters },
      roles: i < 3 || mayBecomeMasters ? ROLES : (['data'] as const),
    }));
    const { master: _directedByTheRun, ...drawnTuning } = drawn.tuning;
    const ranges = { ...drawnTuning.ranges, ...(leaseAuditMs !== undefined && { leaseAuditMs }) };
    const tuning = { ...drawnTuning, ranges };
    this.world = new World(seed, { ...drawn, machines, clients, driftPerMille: 0, tuning });
    this.#placement = new Placement(this.world);
  }

  async start(): Promise<void> {
    for (const node of this.world.nodes) if (node.machine.fromStart) node.start();
    await this.until(30_000, 'the first range', () => (this.ranges.length === 0 ? 'there is none' : ''));
  }

  get nowMs(): number {
    return this.world.loop.monotonicMs();
  }

  /** Lets time pass until nothing is missing any more; fails if that takes longer. Returns how long it took. */
  async until(boundMs: number, what: string, missing: () => string): Promise<number> {
    const beganMs = this.nowMs;
    let nextLookMs = 0;
    let lacking = 'nothing was looked at';
    await this.#drive(() => {
      if (this.nowMs < nextLookMs) return true;
      nextLookMs = this.nowMs + LOOK_MS;
      lacking = missing();
      return lacking !== '' && this.nowMs - beganMs < boundMs;
    });
    if (lacking !== '') throw new Violation('liveness', `${what}: after ${boundMs} ms ${lacking}`);
    return this.nowMs - beganMs;
  }

  async run(ms: number): Promise<void> {
    const endMs = this.nowMs + ms;
    await this.#drive(() => this.nowMs < endMs);
  }

  async #drive(goOn: () => boolean): Promise<void> {
    const { world } = this;
    await world.loop.drive(() => world.failure === undefined && goOn());
    if (world.failure !== undefined) throw world.failure;
  }

  // ------------------------------------------------------------------------------------------ what is done

  node(machineId: number): SimNode {
    return this.world.nodeAt(machineId - 1);
  }

  nodeId(machineId: number): number {
    const { nodeId } = this.node(machineId);
    assert(nodeId !== undefined, `machine ${machineId} has a node of the cluster`);
    return nodeId;
  }

  /** Permanently. */
  kill(machineId: number): void {
    this.#gone.add(this.nodeId(machineId));
    this.node(machineId).end(true);
  }

  /** It loses its power, and returns after this time. */
  async restart(machineId: number, afterMs: number): Promise<void> {
    this.node(machineId).end(true);
    await this.run(afterMs);
    this.node(machineId).start();
  }

  async set(name: string, value: string): Promise<void> {
    await this.call(masterSetSetting, { name, value });
  }

  async setDuty(machineId: number, duty: NodeDuty): Promise<void> {
    await this.call(masterSetNodeDuty, { nodeId: this.nodeId(machineId), duty, forMs: 0 });
  }

  /** Splits the last range at these keys, one after the other. */
  async splitAt(keys: readonly Uint8Array[]): Promise<void> {
    for (const at of keys) {
      const last = this.ranges.find(({ end }) => end.length === 0);
      assert(last !== undefined, 'keys end somewhere');
      const { rangeId, epoch } = last;
      const count = this.ranges.length;
      await this.call(masterSteerRange, { rangeId, epoch, change: { type: 'split', at } });
      await this.until(30_000, `the split of range ${rangeId}`, () => this.#unsettled(count + 1));
    }
  }

  /** The second one ends; the request is repeated until it is done. */
  async merge(rangeId: number, source: number): Promise<void> {
    const isDone = (): boolean => this.ranges.every((range) => range.rangeId !== source);
    for (let tries = 0; tries < 10 && !isDone(); tries++) {
      const range = this.ranges.find((each) => each.rangeId === rangeId);
      assert(range !== undefined, `there is a range ${rangeId}`);
      await this.call(masterSteerRange, { rangeId, epoch: range.epoch, change: { type: 'merge', source } });
      await this.until(20_000, 'the merge', () => (isDone() || !this.#isBusy(rangeId) ? '' : 'it is under way'));
    }
    await this.until(20_000, `the end of range ${source}`, () => (isDone() ? '' : 'it is there'));
  }

  #isBusy(rangeId: number): boolean {
    return this.master?.care?.scheduling.controller.isBusy(rangeId) === true;
  }

  /** Whether all ranges exist, and each has a leader that the masters have heard from. */
  #unsettled(count: number): string {
    if (this.ranges.length !== count) return `there are ${this.ranges.length} ranges, not ${count}`;
    const led = new Set(this.master?.view().leaders.map(([rangeId]) => rangeId));
    const without = this.ranges.find(({ rangeId }) => !led.has(rangeId));
    return without === undefined ? '' : `range ${without.rangeId} has no leader`;
  }

  /** Asks for a change of a range once, and ignores the result. */
  steer(range: RangeDescriptor, change: RangeChange): void {
    const { rangeId, epoch } = range;
    this.#ask(masterSteerRange, { rangeId, epoch, change }, () => {});
  }

  /** SC1. Retries while the masters have no leader, or refuse for the moment. */
  async call<Request, Reply>(method: Method<Request, Reply>, request: Request): Promise<Reply> {
    let reply: Reply | undefined;
    let error = 'nobody leads the masters';
    let asking = false;
    await this.until(20_000, method.name, () => {
      if (reply !== undefined) return '';
      if (asking) return error;
      asking = true; // The answer may come at once.
      const asked = this.#ask(method, request, (failed, answer) => {
        asking = false;
        if (failed === undefined) reply = answer ?? (true as Reply);
        else error = `${failed.code} ${failed.message}`;
      });
      if (!asked) asking = false;
      return reply === undefined ? error : '';
    });
    return reply as Reply;
  }

  /** Returns whether there was a node to ask; an answer may never come, because that node may die. */
  #ask<Request, Reply>(method: Method<Request, Reply>, request: Request, done: Done<Reply>): boolean {
    let asked = false;
    const leader = this.masterNode;
    leader?.enter(({ master }) => {
      if (master === undefined) return;
      asked = true;
      const registry = createRpcRegistry();
      master.register(registry);
      createLocalChannel({ registry, clock: leader.clock }).call(method, request, { timeoutMs: 1_000 }, done);
    });
    return asked;
  }

  // ------------------------------------------------------------------------------------------ what is seen

  get masterNode(): SimNode | undefined {
    return this.#placement.masterNode;
  }

  /** The masters' leader. */
  get master(): Master | undefined {
    return this.#placement.master;
  }

  /** The nodes that are masters, once no change of them is in progress; as their leader sees it. */
  get masterIds(): readonly number[] {
    const { voters = [], votersOutgoing = [], learners = [] } = this.master?.group.status().conf ?? {};
    return [...voters, ...votersOutgoing, ...learners].sort((a, b) => a - b);
  }

  /** As the masters know them. */
  get ranges(): readonly RangeDescriptor[] {
    return this.#placement.ranges;
  }

  /** The number of ranges with a replica on each node, by its id, without nodes that are gone or leaving. */
  replicaCounts(without: readonly number[] = []): ReadonlyMap<number, number> {
    return this.#placement.replicaCounts(this.#present(without));
  }

  leaderCounts(without: readonly number[] = []): ReadonlyMap<number, number> {
    return this.#placement.leaderCounts(this.#present(without));
  }

  #present(without: readonly number[] = []): ReadonlySet<number> {
    const ids = this.world.nodes.flatMap(({ nodeId }) => (nodeId === undefined ? [] : [nodeId]));
    return new Set(ids.filter((id) => !this.#gone.has(id) && !without.includes(id)));
  }

  /** Why ranges do not have exactly this many voters on living nodes. */
  unrepaired(voters = 3): string {
    return this.#placement.unrepaired(voters, this.#present());
  }

  /** Why replicas and leaders are not spread as evenly as possible. */
  unbalanced(without: readonly number[] = []): string {
    return this.#placement.unbalanced(this.#present(without));
  }

  /** Why the ranges do not have each key exactly once, or nodes do not hold what they should. */
  misplaced(): string {
    return this.#placement.misplaced();
  }

  /** Replicas that run on a node, independently of the masters' knowledge. */
  held(machineId: number): readonly number[] {
    return heldBy(this.node(machineId));
  }
}
