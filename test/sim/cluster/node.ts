/**
 * One machine of the simulated cluster and the process on it: a node from `assemble.ts`, on a virtual clock, network,
 * disk and store.
 *
 * N1. A process ends silently: nothing of it runs afterwards, and nothing that it waited for is answered.
 * N2. When a node reports that it must stop, its process ends at once. That is right after a fault of the disk;
 *     otherwise it is a bug.
 */
import { assert, formatAddress, InvariantError, SeededRandom, type VersionRange } from '@remora/base';
import type { SimDisk } from '@remora/base/testing';
import type { Group } from '@remora/raft';
import { CommandError } from '../../../packages/cli/src/exit-codes.ts';
import { type AssembledNode, assembleNode, type NodeRoles } from '../../../packages/cli/src/node/assemble.ts';
import { advertised } from '../../../packages/cli/src/node-options.ts';
import { StoreDamagedError, StoreOpenError } from '../../../packages/dataserver/src/engine/store-errors.ts';
import type { MemoryMedium } from '../../../packages/dataserver/src/testing/memory-store.ts';
import type { AdminApi } from '../../../packages/gateway/src/admin/admin-api.ts';
import type { AuthAdmin } from '../../../packages/gateway/src/authorisation/auth-admin.ts';
import { StateLostError } from '../../../packages/raft/src/multi/host/group/recovery.ts';
import { LogDamagedError } from '../../../packages/raft/src/multi/log/log-format.ts';
import type { SimLoop } from '../common/env/loop.ts';
import { ProcessClock } from '../common/env/process-clock.ts';
import { DiskStall, ProcessDisk } from '../common/env/process-disk.ts';
import { seedOf } from '../common/hash.ts';
import type { DurableLog } from '../common/raft/durable-log.ts';
import { KeptCheck } from '../common/raft/kept-check.ts';
import type { ObservedNode } from '../common/raft/observed-node.ts';
import type { Observer } from '../common/raft/observer.ts';
import type { Trace } from '../common/trace.ts';
import { Violation } from '../common/violation.ts';
import type { Answers } from './checks/answers.ts';
import { AppliedCommands } from './checks/applied-commands.ts';
import type { Owners } from './checks/owners.ts';
import { RaftWatch } from './checks/raft-watch.ts';
import { StoredReplica } from './checks/stored-positions.ts';
import type { LinkNetwork, Party } from './env/link-network.ts';
import { LogDamage } from './env/log-damage.ts';
import type { PeerNetwork } from './env/peer-network.ts';
import type { LostBatches } from './env/sim-medium.ts';
import { SimStore } from './env/sim-store.ts';
import { StoreDamage } from './env/store-damage.ts';
import { tracingLogger } from './env/tracing-logger.ts';
import { Storage } from './machine.ts';
import { type ClusterOptions, ownRate } from './options.ts';
import { SimPlatform } from './platform.ts';
import type { MachineOptions } from './topology.ts';

export interface NodeDeps {
  readonly machine: MachineOptions;
  readonly seed: number;
  readonly loop: SimLoop;
  readonly options: ClusterOptions;
  readonly trace: Trace;
  readonly observer: Observer;
  readonly applied: AppliedCommands;
  readonly answers: Answers;
  readonly owners: Owners;
  /** A client's transaction reaches the node. */
  readonly onTransaction: (node: SimNode) => void;
  readonly links: LinkNetwork;
  readonly peers: PeerNetwork;
  readonly fail: (error: unknown) => void;
  /** What the life that begins now can write; undefined: what this tree can. */
  readonly nextVersions: () => VersionRange | undefined;
  /** The node stopped, and cannot start again from what is on its disk. */
  readonly unusable: (node: SimNode) => void;
}

/** A block of LevelDB's log may hold several. */
const LOST_BATCHES_MAX = 3;

/** One life of the process. */
interface Life {
  readonly number: number;
  readonly platform: SimPlatform;
  node?: AssembledNode;
  stopping?: true;
  /** Its log, a row of its engine or the batches of its store were damaged, at some time. */
  damaged: boolean;
  /** It began without batches of its store, and must notice that. */
  readonly lostState: boolean;
}

export class SimNode implements ObservedNode {
  /** The id of the machine. */
  readonly id: number;
  readonly machine: MachineOptions;
  readonly clock: ProcessClock;
  readonly stall = new DiskStall();
  readonly options: ClusterOptions;
  /** A fault of the disk was injected into this life, which may end because of it. */
  diskFault = false;
  /** Whether the disk is full: the node cannot start. */
  diskFull = false;
  /** The cluster was asked to remove the node that runs here: it must be refused, and must stop. */
  expelled = false;
  lives = 0;
  /** What the process that runs here, or ran last, can write. */
  versions: VersionRange | undefined;
  /** Called when the process died because of its disk. */
  onDied: () => void = () => {};
  /** Called after every event of the process. */
  onLooked: () => void = () => {};
  readonly #deps: NodeDeps;
  #storage: Storage;
  #disksBefore = 0;
  #watch: RaftWatch;
  #kept: KeptCheck;
  /** A bit of the log flipped: the node must notice, at the latest when it starts. */
  #damage: LogDamage | undefined;
  /** A bit of a stored row flipped: the node must notice when it reads it. */
  #storeDamage: StoreDamage | undefined;
  /** Batches of the store that its next opening does not find. */
  #lost: LostBatches | undefined;
  #storeFailure: Error | undefined;
  #life: Life | undefined;

  constructor(deps: NodeDeps) {
    const { machine, loop, options } = deps;
    this.id = machine.id;
    this.machine = machine;
    this.options = options;
    this.#deps = deps;
    const rate = ownRate(deps.seed, machine.id, options);
    this.clock = new ProcessClock(loop, machine.id * 1_000_000, () => this.#looked(), rate);
    this.#storage = this.#newStorage(machine.founder);
    this.#kept = new KeptCheck(this, deps.observer);
    this.#watch = new RaftWatch(this, deps.observer, this.#kept);
  }

  #newStorage(founder: boolean): Storage {
    const { machine, seed, loop, options } = this.#deps;
    return new Storage({ machine, seed, loop, cluster: options, disksBefore: this.#disksBefore, founder });
  }

  #looked(): void {
    this.#watch.looked();
    this.onLooked();
  }

  get disk(): SimDisk {
    return this.#storage.disk;
  }

  get durable(): DurableLog {
    return this.#storage.durable;
  }

  get lostState(): boolean {
    return this.#life?.lostState === true;
  }

  /** The id of the node that runs here or ran last; absent until it has one. */
  get nodeId(): number | undefined {
    return this.#storage.records.identity.nodeId;
  }

  /** Whether the node claims to be a founding member. */
  get founder(): boolean {
    return this.#storage.founder;
  }

  /** Whether it claims so although its disk is not the one of that member. */
  get impostor(): boolean {
    return this.#storage.impostor;
  }

  /** Whether the node would notice that this one has lost its disk. */
  knows(nodeId: number): boolean {
    return this.#storage.records.knows(nodeId);
  }

  get up(): boolean {
    return this.#life?.node !== undefined;
  }

  get down(): boolean {
    return this.#life === undefined;
  }

  get stopping(): boolean {
    return this.#life?.stopping === true;
  }

  /** The parts that run in the process; absent while none does. */
  get roles(): NodeRoles | undefined {
    return this.#life?.node?.roles;
  }

  /** The operators' API, if the node is a gateway and up. */
  get admin(): AdminApi | undefined {
    return this.up && this.machine.roles.includes('gateway') ? this.#life?.platform.admin : undefined;
  }

  /** What manages users and roles, if the node is a gateway and up. */
  get auth(): AuthAdmin | undefined {
    return this.up && this.machine.roles.includes('gateway') ? this.#life?.platform.auth : undefined;
  }

  group(groupId: number): Group | undefined {
    return this.#watch.host?.group(groupId);
  }

  get groupIds(): Iterable<number> {
    return this.#watch.replicas.keys();
  }

  stored(groupId: number): StoredReplica | undefined {
    const replicaId = this.#watch.replicas.get(groupId);
    return replicaId === undefined ? undefined : new StoredReplica(groupId, replicaId, this.#storage.positions);
  }

  /** Does `work` within the process when possible; never if the process ends before. */
  enter(work: (roles: NodeRoles) => void): void {
    const { roles } = this;
    if (roles !== undefined) this.clock.door()(() => work(roles));
  }

  /** The next write of the engine's store fails. */
  failStore(): void {
    this.#storeFailure = new Error('EIO: write failed');
  }

  /** Cancels failures that were requested and have not occurred. */
  repair(): void {
    this.disk.repair();
    this.#storeFailure = undefined;
    if (this.up) this.undamage();
  }

  /** Flips a bit of the log; returns false if there is none whose damage must be noticed, or one is flipped already. */
  damageLog(drawn: { readonly place: number; readonly bit: number }): boolean {
    if (this.#damage?.stands === true) return false;
    this.#damage = LogDamage.inflict(this.disk, drawn);
    if (this.#damage === undefined) return false;
    if (this.#life !== undefined) this.#life.damaged = true;
    return true;
  }

  /** Flips a bit of a stored row; returns false if there is no row, or one is flipped already. */
  damageStore(drawn: { readonly place: number; readonly bit: number }): boolean {
    if (this.#storeDamage?.stands === true) return false;
    this.#storeDamage = StoreDamage.inflict(this.#storage.medium, drawn);
    if (this.#storeDamage === undefined) return false;
    if (this.#life !== undefined) this.#life.damaged = true;
    return true;
  }

  /** The next start does not find some of the last batches of the engine; returns false if there are none. */
  loseBatches(drawn: { readonly place: number; readonly bit: number }): boolean {
    if (this.#lost?.stand === true) return false;
    this.#lost = this.#storage.medium.drawBatches({ place: drawn.place, count: 1 + (drawn.bit % LOST_BATCHES_MAX) });
    return this.#lost !== undefined;
  }

  /** The flipped bits flip back. */
  undamage(): void {
    this.#damage?.undo();
    this.#damage = undefined;
    this.#lost = undefined;
    if (this.up && !this.stopping && this.#storeDamage?.seen === true) this.#unnoticed(this.#storeDamage.where);
    this.#storeDamage = undefined;
  }

  // ------------------------------------------------------------------------------------------ life

  /** The next process has these options instead. */
  changeOptions(flags: Readonly<Record<string, string>>): void {
    this.#storage.changeOptions(flags);
  }

  start(): void {
    assert(this.down, 'a node runs once at a time');
    const number = ++this.lives;
    this.versions = this.#deps.nextVersions();
    this.diskFault = this.diskFull;
    this.repair(); // a requested failure that did not occur must not hit the next life
    this.#deps.trace.add('start', this.id, 0, number);
    this.clock.begin();
    const party: Party = { id: this.id, door: this.clock.door() };
    if (this.#damage?.stands !== true) this.#damage = undefined; // that segment is gone
    if (this.#storeDamage?.stands !== true) this.#storeDamage = undefined; // the row has been written again
    if (this.#storeDamage !== undefined) this.#storeDamage.seen = false; // by this life
    const [damage, storeDamage] = [this.#damage, this.#storeDamage];
    const { medium, noticeable } = this.#storage.found(this.#lost);
    if (!noticeable) this.#lost = undefined;
    const damaged = damage !== undefined || storeDamage !== undefined || noticeable;
    const life: Life = { number, platform: this.#platform(party, medium), damaged, lostState: noticeable };
    this.#life = life;
    const died = (error: unknown): void => this.#died(life, error);
    party.door(() => {
      assembleNode(this.#storage.nodeOptions, life.platform, new AbortController().signal).then((node) => {
        if (damage !== undefined && damage === this.#damage) this.#unnoticed(damage.path);
        if (storeDamage?.seen === true) this.#unnoticed(storeDamage.where);
        life.node = node;
        this.#deps.trace.add('start', this.id, 0, number, 1);
        node.failed.catch(died);
        // A group whose state is lost reports that through `failed`, which may be shortly after the start is over.
        this.#deps.loop.setTimer(0, () => {
          if (noticeable && this.#life === life) this.#unnoticed('its store, which has lost batches by it');
        });
      }, died);
    });
  }

  /** The process ends now; with `power`, so does the machine's power. */
  end(power: boolean): void {
    if (this.#life === undefined) return;
    this.#deps.trace.add('end', this.id, 0, power ? 1 : 0);
    this.clock.kill(); // N1
    this.stall.clear();
    if (power) this.disk.crash();
    else this.disk.kill();
    this.#life.platform.end(!power);
    this.#ended();
  }

  /** Stops the process as an operator does; resolves when it has released everything. */
  async stop(): Promise<void> {
    const life = this.#life;
    if (life?.node === undefined) return;
    const { node } = life;
    life.stopping = true;
    await new Promise<void>((resolve) => this.clock.door()(() => void node.stop().then(resolve)));
    if (this.#life !== life) return;
    this.#deps.trace.add('end', this.id, 0, 2);
    life.platform.end(true);
    this.#ended();
  }

  /** The new contents of its disk are compared with the old ones, as if the bit had not flipped. */
  #ended(): void {
    this.#life = undefined;
    const damage = this.#damage?.stands === true ? this.#damage : undefined;
    damage?.undo();
    this.#watch.ended();
    damage?.redo();
  }

  /**
   * Everything on the machine's disk is lost. The node on it claims to be the former founding member from now on, or
   * joins as a new one.
   */
  loseDisk(next: 'founder' | 'new'): void {
    assert(this.down, 'a disk is replaced while the machine is off');
    const { trace, observer } = this.#deps;
    trace.add('disk', this.id, 0, this.#disksBefore, 0, next);
    this.#disksBefore++;
    this.diskFull = false;
    this.expelled = false;
    this.#damage = undefined;
    this.#storeDamage = undefined;
    this.#lost = undefined;
    this.#storage = this.#newStorage(next === 'founder');
    // The actions of an impostor prove nothing about the member that it claims to be.
    const watcher = this.impostor ? observer.apart() : observer;
    this.#kept = new KeptCheck(this, watcher);
    this.#watch = new RaftWatch(this, watcher, this.#kept);
  }

  #unnoticed(where: string): void {
    const text = `node ${this.id} read a flipped bit of ${where}, and goes on`;
    this.#deps.fail(new Violation('damage is noticed', text));
  }

  #died(life: Life, error: unknown): void {
    if (this.#life !== life) return;
    const refused = (this.impostor || this.expelled) && error instanceof CommandError;
    // A leader's message may reach an impostor before a refusal does; it shows that the impostor lacks what its member
    // had acknowledged.
    const exposed = this.impostor && error instanceof InvariantError;
    const unusable = refused || exposed || (life.damaged && isDamage(error));
    if (!unusable && !this.diskFault) {
      const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
      this.#deps.fail(new Violation('nodes do not stop', `node ${this.id}: ${text}`));
      return;
    }
    this.end(true); // N2: writes that the disk did not take may be gone
    if (unusable) this.#deps.unusable(this);
    else this.onDied();
  }

  #platform(party: Party, medium: MemoryMedium): SimPlatform {
    const { seed, trace, options, links, peers, applied, answers, owners, fail } = this.#deps;
    const { nodeOptions, records, disk } = this.#storage;
    const { peer, client } = advertised(nodeOptions);
    return new SimPlatform({
      party,
      clock: this.clock,
      random: new SeededRandom(seedOf(seed, this.id, 100 + this.lives)),
      logger: tracingLogger(trace, this.id),
      trace,
      watch: this.#watch,
      // The state of an expelled node no longer counts. Its checkpoints have outcomes from before.
      applied: this.expelled ? new AppliedCommands(undefined, false) : applied,
      answers,
      owners,
      onTransaction: () => this.#deps.onTransaction(this),
      fail,
      records,
      versions: this.versions,
      disk: new ProcessDisk({
        disk: disk.mount(),
        door: party.door,
        stall: this.stall,
        onSynced: (path) => this.#kept.synced(path),
        onDirSynced: () => undefined,
      }),
      store: this.#store(medium),
      links,
      peers,
      options,
      addresses: { peer: formatAddress(peer), client: formatAddress(client) },
    });
  }

  #store(medium: MemoryMedium): SimStore {
    return new SimStore({
      medium,
      clock: this.clock,
      random: this.#storage.random,
      stall: this.stall,
      latencyMs: () => this.options.diskMs,
      takeFailure: () => {
        const failure = this.#storeFailure;
        this.#storeFailure = undefined;
        return failure;
      },
      damage: () => this.#storeDamage,
    });
  }
}

const DAMAGES = [LogDamagedError, StoreDamagedError, StoreOpenError, StateLostError];

/** Whether an error reports damage of the log or the engine, or follows from it. */
function isDamage(error: unknown): boolean {
  if (DAMAGES.some((kind) => error instanceof kind)) return true;
  return error instanceof Error && error.cause !== undefined && isDamage(error.cause);
}
