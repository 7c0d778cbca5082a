/**
 * A cluster as far as scheduling can tell: nodes that live and die, ranges that elect leaders, copy data, change their
 * members and report. It does what it is told, takes time for it, and sometimes fails. One tick is one second; the same
 * seed gives the same run. What must never happen is noted as a violation at the moment at which it does.
 */
import { type Random, SeededRandom } from '@remora/base';
import {
  type Instruction,
  type NodeDuty,
  type NodeInfo,
  type RangeInfo,
  Scheduling,
  type Settings,
} from '../../src/scheduling/index.ts';
import { absorb, isMember, keyOf, replicasOf, type SimRange, splitInTwo } from './sim-range.ts';
import { SimulatedDisk } from './simulated-disk.ts';

export interface SimNode {
  readonly nodeId: number;
  readonly labels: Readonly<Record<string, string>>;
  readonly capacityBytes: number;
  duty: NodeDuty;
  maintenanceUntilMs: number;
  alive: boolean;
  /** When `alive` changed. */
  sinceMs: number;
  readonly disk: SimulatedDisk;
}

export interface SimSpec {
  readonly nodes: readonly (Partial<Pick<SimNode, 'labels' | 'capacityBytes'>> | undefined)[];
  readonly settings: Settings;
  readonly seed?: number;
  /** Out of 100 instructions so many get lost, and out of 100 copies so many never end. */
  readonly lossPercent?: number;
  /** Leaders split ranges that have grown or are hot. */
  readonly splits?: boolean;
  /** Disks give space back so much later than replicas have left; at once unless given. */
  readonly freesAfterMs?: number;
  /** Ranges report so often, and at once when something about them has changed. */
  readonly heartbeatTicks?: number;
}

export const TICK_MS = 1_000;
const GIB = 1024 ** 3;
const COPY_BYTES_PER_S = 32 * 1024 * 1024;
const ELECTION_MS = 2_000;
const HOT_FOR_MS = 30_000;
const SUSPECT_AFTER_MS = 3_000;
const DOWN_AFTER_MS = 10_000;

export class SimulatedCluster {
  readonly scheduling: Scheduling;
  readonly nodes = new Map<number, SimNode>();
  readonly ranges = new Map<number, SimRange>();
  readonly violations: string[] = [];
  /** That happened by themselves. */
  splits = 0;
  merges = 0;
  /** The cluster has run for long before it is looked at. */
  nowMs = 3_600_000;
  /** By how much loads differ from report to report, in percent. */
  noisePercent = 0;
  readonly random: Random;
  readonly #spec: SimSpec;
  /** To be reported at once. */
  readonly #changed = new Set<number>();
  /** In an election, a transfer or a joint configuration. */
  readonly #unsettled = new Set<number>();
  #nextReplicaId = 1;
  /** Of children of splits: above those of the ranges that it begins with. */
  #nextRangeId = 1_000_000;
  /** Replica ids that were used for new replicas. */
  readonly #given = new Set<number>([0]);
  #ticks = 0;

  constructor(spec: SimSpec) {
    this.#spec = spec;
    this.random = new SeededRandom(spec.seed ?? 1);
    this.scheduling = new Scheduling({ settings: spec.settings, nextReplicaId: () => this.#nextReplicaId++ });
    for (const node of spec.nodes) this.addNode(node);
    for (const node of this.nodes.values()) node.sinceMs = 0;
  }

  addNode(spec: SimSpec['nodes'][number] = {}): SimNode {
    const nodeId = this.nodes.size + 1;
    const node: SimNode = {
      nodeId,
      labels: spec.labels ?? {},
      capacityBytes: spec.capacityBytes ?? 1_000 * GIB,
      duty: 'serving',
      maintenanceUntilMs: 0,
      alive: true,
      sinceMs: this.nowMs,
      disk: new SimulatedDisk(this.#spec.freesAfterMs ?? 0),
    };
    this.nodes.set(nodeId, node);
    return node;
  }

  /** The first of `voters` leads. */
  addRange(
    voters: readonly number[],
    load: Partial<
      Pick<SimRange, 'bytes' | 'olderBytes' | 'readsPerS' | 'writesPerS' | 'writeBytesPerS' | 'chosen'>
    > = {},
  ): SimRange {
    const rangeId = this.ranges.size + 1;
    const last = this.ranges.get(rangeId - 1);
    if (last !== undefined) last.end = keyOf(rangeId);
    const range: SimRange = {
      rangeId,
      start: rangeId === 1 ? Buffer.alloc(0) : keyOf(rangeId),
      end: Buffer.alloc(0),
      version: 1,
      confVersion: 1,
      term: 1,
      leader: voters[0],
      leaderAtMs: undefined,
      nextLeader: undefined,
      voters: new Map(voters.map((nodeId) => [nodeId, this.#nextReplicaId++])),
      learners: new Map(),
      outgoing: undefined,
      bytes: load.bytes ?? 64 * 1024 * 1024,
      olderBytes: load.olderBytes ?? 0,
      readsPerS: load.readsPerS ?? 0,
      writesPerS: load.writesPerS ?? 0,
      writeBytesPerS: load.writeBytesPerS ?? 0,
      hotSinceMs: undefined,
      chosen: load.chosen ?? false,
    };
    this.ranges.set(rangeId, range);
    this.#changed.add(rangeId);
    return range;
  }

  kill(nodeId: number): void {
    this.#setAlive(nodeId, false);
  }

  revive(nodeId: number): void {
    this.#setAlive(nodeId, true);
  }

  setDuty(nodeId: number, duty: NodeDuty, maintenanceUntilMs = 0): void {
    const node = this.node(nodeId);
    node.duty = duty;
    node.maintenanceUntilMs = maintenanceUntilMs;
  }

  node(nodeId: number): SimNode {
    const node = this.nodes.get(nodeId);
    if (node === undefined) throw new Error(`no node ${nodeId}`);
    return node;
  }

  range(rangeId: number): SimRange {
    const range = this.ranges.get(rangeId);
    if (range === undefined) throw new Error(`no range ${rangeId}`);
    return range;
  }

  tick(): void {
    this.nowMs += TICK_MS;
    this.#ticks += 1;
    for (const rangeId of [...this.#unsettled]) this.#live(this.range(rangeId));
    if (this.#spec.splits) this.#split();
    this.#reportNodes();
    this.#reportRanges();
    this.scheduling.tick(this.nowMs);
    this.#checkOperators();
  }

  /** Operators that were ever admitted. */
  get operators(): number {
    const { controller } = this.scheduling;
    const ids = [...controller.active(), ...controller.history(1)].map(({ operatorId }) => operatorId);
    return Math.max(0, ...ids);
  }

  // -------------------------------------------------------------------------------------------- what happens

  #setAlive(nodeId: number, alive: boolean): void {
    const node = this.node(nodeId);
    node.alive = alive;
    node.sinceMs = this.nowMs;
    for (const range of this.ranges.values()) if (isMember(range, nodeId)) this.#unsettle(range);
  }

  #unsettle({ rangeId }: SimRange): void {
    this.#changed.add(rangeId);
    this.#unsettled.add(rangeId);
  }

  #live(range: SimRange): void {
    if (range.outgoing !== undefined && this.#quorum(range)) {
      this.#leave(range, range.outgoing);
      range.outgoing = undefined;
      this.#bump(range);
    }
    const leads = range.leader !== undefined && this.node(range.leader).alive && range.voters.has(range.leader);
    if (!leads && range.leaderAtMs === undefined) range.leaderAtMs = this.nowMs + ELECTION_MS;
    if (range.leaderAtMs === undefined) {
      if (range.outgoing === undefined) this.#unsettled.delete(range.rangeId);
    } else if (this.nowMs >= range.leaderAtMs) this.#elect(range, leads);
  }

  #elect(range: SimRange, leads: boolean): void {
    range.leaderAtMs = undefined;
    const wanted = range.nextLeader;
    range.nextLeader = undefined;
    const live = [...range.voters.keys()].filter((nodeId) => this.node(nodeId).alive);
    if (!this.#quorum(range) || (leads && wanted === undefined)) return;
    range.leader = wanted !== undefined && live.includes(wanted) ? wanted : live[this.random.int(live.length)];
    range.term += 1;
    this.#changed.add(range.rangeId);
  }

  #quorum(range: SimRange): boolean {
    const configs = [range.voters, ...(range.outgoing === undefined ? [] : [range.outgoing])];
    return configs.every((voters) => this.hasQuorum([...voters.keys()]));
  }

  hasQuorum(voters: readonly number[]): boolean {
    return voters.filter((nodeId) => this.node(nodeId).alive).length > voters.length / 2;
  }

  #bump(range: SimRange): void {
    range.confVersion += 1;
    this.#changed.add(range.rangeId);
  }

  // -------------------------------------------------------------------------------------------- what is reported

  #reportNodes(): void {
    for (const node of this.nodes.values()) {
      const bytes = this.scheduling.model.node(node.nodeId)?.totals.bytes ?? 0;
      this.scheduling.nodeReported(this.#nodeInfo(node, node.disk.usedBytes(bytes, this.nowMs)));
    }
  }

  #nodeInfo(node: SimNode, usedBytes: number): NodeInfo {
    const silentMs = node.alive ? 0 : this.nowMs - node.sinceMs;
    const liveness = silentMs >= DOWN_AFTER_MS ? 'down' : silentMs >= SUSPECT_AFTER_MS ? 'suspect' : 'up';
    return {
      nodeId: node.nodeId,
      liveness,
      livenessSinceMs: node.sinceMs,
      duty: node.duty,
      maintenanceUntilMs: node.maintenanceUntilMs,
      labels: node.labels,
      capacityBytes: node.capacityBytes,
      availableBytes: Math.max(0, node.capacityBytes - usedBytes),
    };
  }

  #reportRanges(): void {
    const every = this.#spec.heartbeatTicks ?? 5;
    const due = new Set(this.#changed);
    this.#changed.clear();
    for (const { rangeId } of this.scheduling.controller.active()) due.add(rangeId);
    for (const rangeId of this.ranges.keys()) if (rangeId % every === this.#ticks % every) due.add(rangeId);
    for (const rangeId of due) {
      const range = this.ranges.get(rangeId);
      if (range !== undefined) this.#reportRange(range);
    }
  }

  /** Without a leader there is nobody to report. */
  #reportRange(range: SimRange): void {
    const { leader } = range;
    if (leader === undefined || !this.node(leader).alive || !this.#quorum(range)) return;
    const instruction = this.scheduling.rangeReported(this.#rangeInfo(range), this.nowMs);
    if (instruction !== undefined && !this.#isLost()) this.#carryOut(range, instruction);
  }

  #rangeInfo(range: SimRange): RangeInfo {
    const replicas = replicasOf(range);
    return {
      descriptor: {
        rangeId: range.rangeId,
        start: range.start,
        end: range.end,
        epoch: { confVersion: range.confVersion, version: range.version },
        replicas,
        revisionSource: 'master',
      },
      leader: range.leader,
      term: range.term,
      progress: replicas
        .filter(({ nodeId }) => nodeId !== range.leader)
        .map(({ nodeId, replicaId }) => {
          const node = this.node(nodeId);
          const learner = range.learners.get(nodeId);
          const behind = learner !== undefined && this.nowMs < learner.readyAtMs;
          return {
            replicaId,
            caughtUp: !behind,
            silentSinceMs: node.alive ? undefined : node.sinceMs,
          };
        }),
      joint: range.outgoing !== undefined,
      changePending: false,
      bytes: range.bytes,
      readsPerS: this.#noisy(range.readsPerS),
      writesPerS: this.#noisy(range.writesPerS),
      readBytesPerS: 0,
      writeBytesPerS: this.#noisy(range.writeBytesPerS),
      chosen: range.chosen,
    };
  }

  #noisy(value: number): number {
    if (this.noisePercent === 0) return value;
    const percent = this.random.int(2 * this.noisePercent + 1) - this.noisePercent;
    return Math.round(value * (1 + percent / 100));
  }

  #isLost(): boolean {
    return this.random.int(100) < (this.#spec.lossPercent ?? 0);
  }

  // -------------------------------------------------------------------------------------------- what is carried out

  #carryOut(range: SimRange, instruction: Instruction): void {
    switch (instruction.type) {
      case 'addLearner':
        return this.#addLearner(range, instruction.nodeId, instruction.replicaId);
      case 'changeVoters':
        return this.#changeVoters(range, instruction);
      case 'leaveJoint':
        return; // left by itself in the next tick
      case 'transferLeader':
        return this.#transfer(range, instruction.replicaId);
      case 'merge':
        return this.#merge(range, instruction);
      default:
        this.violations.push(`range ${range.rangeId}: ${instruction.type} was not asked for`);
    }
  }

  #addLearner(range: SimRange, nodeId: number, replicaId: number): void {
    if (range.learners.get(nodeId)?.replicaId === replicaId) return;
    if (isMember(range, nodeId)) this.violations.push(`range ${range.rangeId}: two replicas on node ${nodeId}`);
    if (this.#given.has(replicaId)) this.violations.push(`range ${range.rangeId}: replica id ${replicaId} came twice`);
    this.#given.add(replicaId);
    const copyMs = Math.max(TICK_MS, (1_000 * range.bytes) / COPY_BYTES_PER_S);
    const readyAtMs = this.#isLost() ? Number.POSITIVE_INFINITY : this.nowMs + copyMs;
    range.learners.set(nodeId, { replicaId, readyAtMs });
    this.#bump(range);
  }

  #changeVoters(range: SimRange, change: { promote: readonly number[]; remove: readonly number[] }): void {
    const nodeOf = new Map(replicasOf(range).map(({ replicaId, nodeId }) => [replicaId, nodeId]));
    const before = new Map(range.voters);
    for (const replicaId of change.promote) {
      const nodeId = nodeOf.get(replicaId);
      if (nodeId === undefined || before.has(nodeId)) continue;
      if (this.nowMs < (range.learners.get(nodeId)?.readyAtMs ?? 0)) {
        this.violations.push(`range ${range.rangeId}: the learner on node ${nodeId} was promoted too early`);
      }
      range.voters.set(nodeId, replicaId);
      range.learners.delete(nodeId);
    }
    for (const replicaId of change.remove) {
      const nodeId = nodeOf.get(replicaId) ?? 0;
      if (nodeId === range.leader) this.violations.push(`range ${range.rangeId}: its leader was removed`);
      if (!range.voters.delete(nodeId)) range.learners.delete(nodeId);
    }
    if (this.hasQuorum([...before.keys()]) && !this.hasQuorum([...range.voters.keys()])) {
      this.violations.push(`range ${range.rangeId}: a change cost its quorum`);
    }
    const joined = [...range.voters.keys()].filter((nodeId) => !before.has(nodeId)).length;
    const left = [...before.keys()].filter((nodeId) => !range.voters.has(nodeId)).length;
    if (joined + left > 1) range.outgoing = before;
    else this.#leave(range, before);
    this.#unsettle(range);
    this.#bump(range);
  }

  /** Voters that go are learners first; they are told again to go. */
  #leave(range: SimRange, before: ReadonlyMap<number, number>): void {
    for (const [nodeId, replicaId] of before) {
      if (!range.voters.has(nodeId)) range.learners.set(nodeId, { replicaId, readyAtMs: 0 });
    }
  }

  #transfer(range: SimRange, replicaId: number): void {
    const nodeId = [...range.voters].find(([, id]) => id === replicaId)?.[0];
    const node = nodeId === undefined ? undefined : this.nodes.get(nodeId);
    if (node === undefined || !node.alive || node.duty !== 'serving') {
      this.violations.push(`range ${range.rangeId}: its leader was to go to node ${nodeId}, which cannot take it`);
    }
    range.nextLeader = nodeId;
    range.leaderAtMs = this.nowMs + TICK_MS;
    this.#unsettle(range);
  }

  /** As a leader does it: what has too many bytes is refused, older versions counted. */
  #merge(target: SimRange, { source: { rangeId }, bytesMax }: Extract<Instruction, { type: 'merge' }>): void {
    const source = this.ranges.get(rangeId);
    if (source === undefined) return; // told again
    const nodes = [...source.voters.keys()];
    if (!target.end.equals(source.start) || nodes.some((nodeId) => !target.voters.has(nodeId))) {
      this.violations.push(`range ${target.rangeId}: range ${rangeId} cannot be merged with it`);
      return;
    }
    if (nodes.some((nodeId) => !this.node(nodeId).alive)) return;
    if (target.bytes + target.olderBytes + source.bytes + source.olderBytes > bytesMax) {
      return this.scheduling.controller.refused(target.rangeId, 'they have too many bytes', this.nowMs);
    }
    absorb(target, source);
    this.merges++;
    this.ranges.delete(rangeId);
    this.#unsettled.delete(rangeId);
    this.scheduling.rangeRemoved(rangeId);
    this.#changed.add(target.rangeId);
  }

  /** What leaders do by themselves: split what has grown, or has been hot for long enough. */
  #split(): void {
    const { splits } = this.scheduling.settings.merging;
    for (const range of [...this.ranges.values()]) {
      range.bytes += (range.writeBytesPerS * TICK_MS) / 1_000;
      const requests = this.#noisy(range.readsPerS + range.writesPerS);
      if (requests < splits.requestsPerS && range.writeBytesPerS < splits.bytesPerS) range.hotSinceMs = undefined;
      else range.hotSinceMs ??= this.nowMs;
      const hot = range.hotSinceMs !== undefined && this.nowMs - range.hotSinceMs >= HOT_FOR_MS;
      if (!hot && range.bytes + range.olderBytes < splits.bytes) continue;
      if (this.scheduling.controller.isBusy(range.rangeId)) continue;
      const child = splitInTwo(range, this.#nextRangeId++, () => this.#nextReplicaId++);
      this.ranges.set(child.rangeId, child);
      this.splits++;
      for (const { rangeId } of [range, child]) this.#changed.add(rangeId);
    }
  }

  #checkOperators(): void {
    const busy = new Set<number>();
    for (const { rangeId } of this.scheduling.controller.active()) {
      if (busy.has(rangeId)) this.violations.push(`range ${rangeId}: two operators`);
      busy.add(rangeId);
    }
  }
}
