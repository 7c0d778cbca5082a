/**
 * One machine of the simulated cluster, and the process on it: the product's host and log over a virtual clock, disk
 * and network.
 *
 * N1. A process ends without notice: none of its code runs afterwards, and nothing that it waited for is answered.
 * N2. When the log or the host reports that it cannot continue, the process ends at once. That is right after a disk
 *     fault; otherwise it is a bug.
 */
import { assert, type Random, SeededRandom, silentLogger, type Timer } from '@remora/base';
import { SimDisk } from '@remora/base/testing';
import type { ConfState, Group, GroupLog, HostStats, NodeRaftHost, RecoveredGroup, Transport } from '@remora/raft';
import { createRaftHost } from '../../../packages/raft/src/multi/host/host.ts';
import { openGroupLog } from '../../../packages/raft/src/multi/log/group-log.ts';
import type { SimLoop } from '../common/env/loop.ts';
import { ProcessClock } from '../common/env/process-clock.ts';
import { DiskStall, ProcessDisk } from '../common/env/process-disk.ts';
import { ProcessTransport } from '../common/env/process-transport.ts';
import { DurableLog } from '../common/raft/durable-log.ts';
import { KeptCheck, termsOf } from '../common/raft/kept-check.ts';
import { observedLog } from '../common/raft/observed-log.ts';
import type { ObservedNode } from '../common/raft/observed-node.ts';
import type { Observer } from '../common/raft/observer.ts';
import { ReplicaView } from '../common/raft/replica-view.ts';
import type { Trace } from '../common/trace.ts';
import { Violation } from '../common/violation.ts';
import type { WrittenValues } from './checks/written-values.ts';
import { Engine, type EngineRecord } from './env/engine.ts';
import { HastyRandom } from './hasty-random.ts';
import { Machine } from './machine.ts';
import type { NodeOptions } from './options.ts';

const LOG_DIR = 'log';

export interface NodeDeps {
  readonly id: number;
  readonly seed: number;
  readonly loop: SimLoop;
  readonly options: NodeOptions;
  readonly observer: Observer;
  /** The values that clients wrote into a group. */
  readonly values: (groupId: number) => WrittenValues;
  readonly trace: Trace;
  /** A new network endpoint for this node. */
  readonly transport: () => Transport;
  readonly locate: (replicaId: number) => number | undefined;
  readonly fail: (error: unknown) => void;
  /** A process ended. `stats` are the counters of its host. */
  readonly ended: (stats: Readonly<HostStats>) => void;
}

export class SimNode implements ObservedNode {
  readonly id: number;
  readonly clock: ProcessClock;
  disk: SimDisk;
  readonly stall = new DiskStall();
  durable: DurableLog;
  engine = new Engine();
  readonly machines = new Map<number, Machine>();
  readonly options: NodeOptions;
  /** A disk fault was injected into this life: it may end because of it. */
  diskFault = false;
  /** Whether the disk is full, so that the node cannot start. */
  diskFull = false;
  lives = 0;
  /** Nodes that died of a disk fault restart after this time, through `onDied`. */
  onDied: () => void = () => {};
  #host: NodeRaftHost | undefined;
  #log: GroupLog | undefined;
  #transport: ProcessTransport | undefined;
  #state: 'down' | 'starting' | 'up' = 'down';
  #turns = 0;
  #checkpointTimer: Timer | undefined;
  readonly #deps: NodeDeps;
  readonly #kept: KeptCheck;
  readonly #random: Random;
  readonly #diskRandom: Random;

  constructor(deps: NodeDeps) {
    const { id, seed, loop } = deps;
    this.id = id;
    this.#deps = deps;
    this.options = deps.options;
    this.#random = new SeededRandom(seed * 64 + id);
    this.clock = new ProcessClock(loop, id * 1_000_000, () => this.#looked());
    this.clock.setRate(this.options.rate);
    this.#diskRandom = new SeededRandom(seed * 64 + id + 32);
    this.disk = this.#newDisk();
    this.durable = new DurableLog(this.disk, LOG_DIR);
    this.#kept = new KeptCheck(this, deps.observer);
  }

  #newDisk(): SimDisk {
    const { loop, options } = this.#deps;
    return new SimDisk({ random: this.#diskRandom, clock: loop, latencyMs: options.diskMs });
  }

  #hostRandom(): Random {
    const { hasty, host } = this.options;
    return hasty ? new HastyRandom(this.#random, host.electionTicks ?? 0) : this.#random;
  }

  get host(): NodeRaftHost | undefined {
    return this.#host;
  }

  get up(): boolean {
    return this.#state === 'up';
  }

  get down(): boolean {
    return this.#state === 'down';
  }

  get groupIds(): readonly number[] {
    return this.engine.groups();
  }

  stored(groupId: number): EngineRecord | undefined {
    return this.engine.record(groupId);
  }

  group(groupId: number): Group | undefined {
    return this.#host?.group(groupId);
  }

  /** Runs `work` within the process once it can run. Does nothing if the process ends before. */
  enter(work: (host: NodeRaftHost) => void): void {
    const host = this.#host;
    if (host === undefined || this.#state !== 'up') return;
    this.clock.door()(() => work(host));
  }

  // ------------------------------------------------------------------------------------------ life

  start(): void {
    assert(this.#state === 'down', 'a node runs once at a time');
    this.#state = 'starting';
    const life = ++this.lives;
    this.clock.begin();
    this.diskFault = this.diskFull;
    this.#deps.trace.add('start', this.id, 0, life);
    const disk = new ProcessDisk({
      disk: this.disk.mount(),
      door: this.clock.door(),
      stall: this.stall,
      onSynced: (path) => this.#kept.synced(path),
      onDirSynced: () => undefined,
    });
    const died = (error: unknown): void => this.#died(life, error);
    openGroupLog({
      disk,
      dir: LOG_DIR,
      options: this.options.log,
      logger: silentLogger,
      onFailure: died,
    }).then((log) => {
      if (life === this.lives && this.#state === 'starting') this.clock.door()(() => this.#run(life, log));
    }, died);
  }

  #run(life: number, log: GroupLog): void {
    if (life !== this.lives || this.#state !== 'starting') return;
    this.#deps.trace.add('start', this.id, 0, life, 1);
    const recovered = log.recovered();
    this.#kept.recovered(recovered);
    const transport = new ProcessTransport({
      inner: this.#deps.transport(),
      door: this.clock.door(),
      onSend: (messages) => this.#deps.observer.sent(this, messages),
      onHeartbeat: ({ type, sequence }) => this.#deps.trace.add('heartbeat', this.id, 0, sequence, 0, type),
    });
    this.#transport = transport;
    this.#log = log;
    this.#host = createRaftHost({
      nodeId: this.id,
      clock: this.clock,
      random: this.#hostRandom(),
      log: observedLog(log, (batch) => this.#deps.observer.appended(this, batch)),
      transport,
      options: this.options.host,
      onFatal: (error) => this.#died(life, error),
    });
    this.#turns = 0;
    this.#state = 'up';
    this.#host.start();
    for (const groupId of this.engine.groups()) this.#open(groupId, recovered.get(groupId));
    // What a crash left of replicas that were removed.
    for (const groupId of recovered.keys()) if (this.engine.record(groupId) === undefined) log.removeGroup(groupId);
    log.forgetRecovered();
    this.#checkpointLater();
  }

  /** The process ends now. With `power`, the machine loses power too. */
  end(power: boolean): void {
    if (this.#state === 'down') return;
    this.#deps.trace.add('end', this.id, 0, power ? 1 : 0);
    this.#state = 'down';
    this.clock.kill(); // N1
    this.stall.clear();
    if (power) this.disk.crash();
    else this.disk.kill();
    if (this.#host !== undefined) this.#deps.ended(this.#host.stats());
    this.#host = undefined;
    this.#log = undefined;
    this.machines.clear();
    void this.#transport?.end();
    this.#transport = undefined;
    this.#kept.ended();
  }

  /** Replaces the machine's disk with an empty one, while no process runs. */
  replaceDisk(): void {
    assert(this.#state === 'down', 'a disk is replaced while the machine is off');
    this.disk = this.#newDisk();
    this.durable = new DurableLog(this.disk, LOG_DIR);
    this.engine = new Engine();
    this.diskFull = false;
  }

  #died(life: number, error: unknown): void {
    if (life !== this.lives || this.#state === 'down') return;
    if (error instanceof Violation) {
      this.#deps.fail(error);
      return;
    }
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    if (!this.diskFault) {
      this.#deps.fail(new Violation('nodes do not stop', `node ${this.id}: ${text}`));
      return;
    }
    this.end(true); // N2: data that the disk did not store may be gone.
    this.onDied();
  }

  /** Ends the process as an operator does. Resolves once everything is released. */
  async stop(): Promise<void> {
    const { machines } = this;
    this.#checkpointTimer?.cancel();
    const [host, log] = [this.#host, this.#log];
    if (host === undefined || log === undefined) return;
    await host.stop();
    await log.close();
    machines.clear();
    this.#state = 'down';
    this.#host = undefined;
    this.#deps.ended(host.stats());
    this.#deps.trace.add('end', this.id, 0, 2);
  }

  #looked(): void {
    const turns = this.#host?.stats().turns ?? 0;
    if (turns === this.#turns) return;
    this.#turns = turns;
    this.#deps.observer.looked(this);
  }

  // ------------------------------------------------------------------------------------------ replicas

  create(groupId: number, replicaId: number, conf: ConfState): void {
    assert(this.engine.record(groupId) === undefined, 'a node has one replica of a group');
    this.engine.create(groupId, replicaId, conf);
    this.#deps.observer.addView(new ReplicaView({ groupId, replicaId, nodeId: this.id }, conf));
    if (this.#state === 'up') this.#open(groupId, undefined);
  }

  /** Removes the replica with all its data. */
  remove(groupId: number): void {
    void this.#host?.removeGroup(groupId);
    this.engine.remove(groupId);
    this.machines.delete(groupId);
  }

  #open(groupId: number, recovered: RecoveredGroup | undefined): void {
    const record = this.engine.record(groupId);
    const host = this.#host;
    if (record === undefined || host === undefined) return;
    const { replicaId, applied, conf } = record;
    const { observer, values } = this.#deps;
    const machine = new Machine(
      {
        groupId,
        replicaId,
        engine: this.engine,
        clock: this.clock,
        random: this.#random,
        options: this.options.machine,
        watcher: {
          applied: (entry, checksum, conf) => {
            if (observer.applied(this, groupId, entry, { checksum, conf })) values(groupId).applied(entry);
          },
          installed: (meta, checksum) => observer.installed(this, groupId, meta, checksum),
          snapshot: (index) => this.#deps.trace.add('snapshot', this.id, groupId, index),
        },
      },
      record,
    );
    this.machines.set(groupId, machine);
    observer.view(groupId, replicaId)?.begin({ ...this.#found(groupId, recovered), applied: applied.index, conf });
    host.createGroup({
      groupId,
      replicaId,
      applied,
      conf,
      stateMachine: machine,
      locate: this.#deps.locate,
      ...(recovered !== undefined && { recovered }),
    });
  }

  #found(groupId: number, recovered: RecoveredGroup | undefined) {
    const start = recovered?.start ?? this.engine.record(groupId)?.applied ?? { index: 0, term: 0 };
    return {
      start,
      terms: recovered === undefined ? [] : termsOf(recovered),
      confs: recovered?.outline.confs.slice() ?? [],
    };
  }

  // ------------------------------------------------------------------------------------------ checkpoints

  #checkpointLater(): void {
    const { checkpointMs } = this.options;
    this.#checkpointTimer = this.clock.setTimer(checkpointMs / 2 + this.#random.int(checkpointMs), () => {
      for (const groupId of this.engine.groups()) this.checkpoint(groupId);
      this.#checkpointLater();
    });
  }

  /** Stores the applied state once the log is durable up to it. Then the log may be truncated. */
  checkpoint(groupId: number): void {
    const { lives } = this;
    const host = this.#host;
    const machine = this.machines.get(groupId);
    const replicaId = this.engine.record(groupId)?.replicaId;
    if (host === undefined || machine === undefined || machine.busy || replicaId === undefined) return;
    const { state } = machine;
    if (state.applied.index === 0 || state.applied.index === this.engine.record(groupId)?.applied.index) return;
    void host.logDurable().then(() => {
      if (lives !== this.lives || this.#state !== 'up') return;
      this.clock.setTimer(this.#random.int(this.options.machine.storeMsMax + 1), () => {
        if (!this.engine.store(groupId, replicaId, state)) return;
        this.#deps.trace.add('checkpoint', this.id, groupId, state.applied.index);
        host.group(groupId)?.checkpointed(state.applied);
      });
    });
  }
}
