/**
 * Runs the Raft groups of one node.
 *
 * H1. One loop turn (turns.ts) processes the groups that have something to do: one frame per node, then one log append,
 *     then apply.
 * H2. Log callbacks come in order, so marks are reported in order.
 * H3. Every entry passed to a state machine was passed to the log before, in this turn or an earlier one: a
 *     `logDurable` requested after an apply covers it.
 * H4. A turn is bounded by time (turns.ts). Merged heartbeats and their replies leave at once and wait for no turn.
 * H5. Any exception from the core, a state machine or the log is a broken invariant: the host stops at once and reports
 *     it once through `onFatal`.
 * H6. A host without heartbeats to send wakes for its groups only, but within `electionTicks` − `catchUpTicksMax`: the
 *     ticks made up for after a stall are then fewer than an election timeout has (ticker.ts T2).
 */
import { assert, type Clock, type Logger, loopSection, type Random, Rotation, silentLogger } from '@remora/base';
import type { TraceEvent } from '../../core/trace.ts';
import type { ReplicaId, TickTime } from '../../core/types.ts';
import type { Group, GroupOptions, RaftHost } from '../host-api.ts';
import type { GroupId, GroupLog, GroupMessage, HeartbeatFrame, NodeId, Transport } from '../ports.ts';
import { Campaigns } from './clock/campaigns.ts';
import { LeaseClock } from './clock/lease-clock.ts';
import { StallLog } from './clock/stall-log.ts';
import { TickWheel, WHEEL_TICKS_MAX } from './clock/tick-wheel.ts';
import { Ticker } from './clock/ticker.ts';
import { EntryCache } from './entries/entry-cache.ts';
import { EntryReader } from './entries/entry-reader.ts';
import { GroupRunner } from './group/group-runner.ts';
import { Heartbeats } from './heartbeats/heartbeats.ts';
import type { HostContext } from './host-context.ts';
import { LogWatch } from './log-watch.ts';
import { type HostOptions, hostOptions } from './options.ts';
import type { Outbox } from './outbox.ts';
import { SnapshotIntake } from './snapshots/snapshot-intake.ts';
import { snapshotRates } from './snapshots/snapshot-rates.ts';
import { SnapshotSender } from './snapshots/snapshot-sender.ts';
import { type HostInFlight, type HostStats, newStats } from './stats.ts';
import { TurnLoop } from './turns.ts';
import { WaitingAppends } from './waiting-appends.ts';

export interface RaftHostOptions {
  readonly nodeId: NodeId;
  readonly clock: Clock;
  readonly random: Random;
  /** Owned by the caller: the host does not close it. */
  readonly log: GroupLog;
  readonly transport: Transport;
  readonly options?: Partial<HostOptions>;
  readonly logger?: Logger;
  /** A broken invariant (H5): the process must stop. */
  readonly onFatal: (error: unknown) => void;
  /**
   * A message came for a group or replica that is not here: perhaps it is about to be created, perhaps it was removed.
   */
  readonly onUnknownGroup?: (from: NodeId, message: GroupMessage) => void;
  /**
   * A replica has heard no leader for `HostOptions.silenceTicks`. It may have been removed without learning of it, so
   * ask a node that knows the membership whether it still belongs. Called again after each such time (design §5 ▸,
   * traps 11).
   */
  readonly onSilence?: (group: Group) => void;
  /**
   * A replica asks for votes that is no member of the group, as far as it is applied here: it may have been removed.
   */
  readonly onNonMember?: (group: Group, stranger: { readonly replicaId: ReplicaId; readonly node: NodeId }) => void;
  /**
   * Receives every change of state and every message of every group, in order, for a check against an external model.
   * Called from within the core: it must only record the event.
   */
  readonly trace?: (groupId: GroupId, event: TraceEvent) => void;
  readonly times?: HostTimes | undefined;
}

/** Receives what the host measures, in ms. */
export interface HostTimes {
  /** From an append to the log until it is durable. */
  appended(tookMs: number): void;
  /** From a heartbeat to a node until its reply. */
  roundTrip(node: NodeId, tookMs: number): void;
}

/** A `RaftHost` with its counters. */
export interface NodeRaftHost extends RaftHost {
  /**
   * Must be called when the log failed (`GroupLog` L3): nothing more becomes durable. The host ends, calls of
   * `logDurable` reject with `error`, and `stop`, even one in progress, no longer waits for the log.
   */
  logFailed(error: Error): void;
  stats(): Readonly<HostStats>;
  inFlight(): HostInFlight;
  /** The disk neither completes writes nor refuses them. */
  readonly logHangs: boolean;
}

export function createRaftHost(options: RaftHostOptions): NodeRaftHost {
  return new Host(options);
}

/** How often the host checks that it is connected to the nodes of all members. */
const REACH_TICKS = 80;
/** How many groups it asks for their members each time. */
const REACH_GROUPS = 256;

class Host implements NodeRaftHost {
  readonly #given: RaftHostOptions;
  readonly #options: HostOptions;
  readonly #logger: Logger;
  readonly #groups = new Map<GroupId, GroupRunner>();
  readonly #stats = newStats();
  readonly #context: HostContext;
  readonly #ticker: Ticker;
  readonly #stalls: StallLog;
  readonly #sender: SnapshotSender;
  readonly #entryCache: EntryCache;
  readonly #intake: SnapshotIntake;
  readonly #heartbeats: Heartbeats;
  readonly #waitingAppends: WaitingAppends;
  readonly #leaseClock: LeaseClock;
  readonly #logWatch: LogWatch;
  #ticksSinceBeat = 0;
  /** The first tick connects to the others. */
  #ticksSinceReach = REACH_TICKS;
  readonly #reachedFor = new Rotation(() => this.#groups.values());
  /** The nodes of members: as the last round over all groups found them, and as the current one has found so far. */
  #peers: ReadonlySet<NodeId> = new Set();
  #peersFound = new Set<NodeId>();
  #ticksSinceSilenceCheck = 0;
  readonly #wheel = new TickWheel();
  readonly #time: TickTime = { ticks: 0, now: undefined };
  readonly #turns: TurnLoop;
  #failed = false;
  #state: 'created' | 'running' | 'stopped' = 'created';
  /** Batches passed to the log, and called back by it (H2). */
  #appended = 0;
  #durable = 0;
  readonly #durableWaiters: {
    readonly upTo: number;
    readonly resolve: () => void;
    readonly reject: (error: Error) => void;
  }[] = [];
  #logFailure: Error | undefined;

  constructor(given: RaftHostOptions) {
    const { clock, random, log, transport, logger = silentLogger } = given;
    this.#given = given;
    this.#logger = logger;
    this.#stalls = new StallLog({ clock, logger });
    this.#options = hostOptions(given.options);
    const fail = (error: unknown) => this.#fail(error);
    const stats = this.#stats;
    const options = this.#options;
    const rates = snapshotRates({ clock, options, stats });
    this.#sender = new SnapshotSender({ clock, transport, options, stats, rate: rates.sending, fail });
    this.#entryCache = new EntryCache(options.entryCacheBytes);
    const guard = (work: () => void) => this.#guard(work);
    const find = (groupId: GroupId) => (this.#state === 'running' ? this.#groups.get(groupId) : undefined);
    this.#intake = new SnapshotIntake({ clock, options, stats, rate: rates.receiving, fail, find });
    this.#heartbeats = new Heartbeats({
      bootId: random.int(Number.MAX_SAFE_INTEGER),
      send: (node, frame) => this.#sendHeartbeat(node, frame),
      begun: () => this.#ticker.wakeWithin(this.#ticksToBeat),
      receiver: (groupId) => this.#groups.get(groupId),
      answered: (node, sent) => given.times?.roundTrip(node, clock.monotonicMs() - sent.monotonicMs),
    });
    this.#waitingAppends = new WaitingAppends({ clock, intervalMs: options.appendReviewMs, guard });
    this.#leaseClock = new LeaseClock({
      clock,
      stallMs: (options.catchUpTicksMax + 0.5) * options.tickMs,
      voided: (nowMs) => this.#voidLeases(nowMs),
    });
    this.#logWatch = new LogWatch({
      logger,
      stallTicks: options.logStallTicks,
      intervalTicks: options.heartbeatTicks,
      handOversMax: options.campaignsMax,
    });
    const campaigns = new Campaigns({ most: options.campaignsMax, lastsTicks: options.electionTicks });
    this.#context = {
      clock,
      random,
      logger,
      log,
      options,
      stats,
      entryCache: this.#entryCache,
      entryReader: new EntryReader({ log, readsMax: options.entryReadsMax, stats, guard, fail }),
      heartbeats: this.#heartbeats,
      leaseClock: this.#leaseClock,
      time: this.#time,
      admitsCampaign: (runner) => campaigns.admit(runner, this.#time.ticks),
      markDirty: (runner) => this.#turns.markDirty(runner),
      appendsWait: (runner) => this.#waitingAppends.add(runner),
      schedule: (runner) => this.#ticker.wakeWithin(this.#wheel.schedule(runner)),
      wantSnapshot: (runner, to) => this.#sender.want(runner, to),
      stranger: (runner, stranger) => this.#given.onNonMember?.(runner, stranger),
      trace: given.trace,
      fail,
    };
    this.#turns = new TurnLoop({
      clock,
      turnBudgetMs: options.turnBudgetMs,
      guard: (work) => this.#guard(work),
      flush: (outbox, durable) => {
        this.#stats.turns++;
        this.#send(outbox);
        this.#append(outbox, durable);
      },
    });
    this.#ticker = new Ticker({
      clock,
      tickMs: options.tickMs,
      catchUpTicksMax: options.catchUpTicksMax,
      tick: (count) => this.#guarded(() => loopSection('heartbeat', () => this.#tick(count))),
      stalled: (elapsedMs) => {
        stats.stalls++;
        this.#stalls.stalled(elapsedMs);
      },
      nextDue: () => this.#nextDue(),
    });
  }

  start(): void {
    assert(this.#state === 'created', 'a raft host starts once');
    this.#state = 'running';
    this.#given.transport.start({
      onMessages: (from, messages) => this.#guard(() => this.#receive(from, messages)),
      onHeartbeat: (from, frame) => this.#guard(() => this.#receiveHeartbeat(from, frame)),
      onSnapshot: (from, header) => this.#intake.receive(from, header),
      onUnreachable: (node) => this.#guard(() => this.#unreachable(node)),
      onGone: (node) => this.#guard(() => this.#gone(node)),
    });
    this.#ticker.start();
    this.#turns.start();
  }

  createGroup(options: GroupOptions): Group {
    assert(!this.#groups.has(options.groupId), `group ${options.groupId} already exists on this node`);
    assert(!this.stopped, 'the raft host is stopped');
    const runner = new GroupRunner(this.#context, options);
    this.#groups.set(options.groupId, runner);
    this.#heartbeats.groupsChanged();
    return runner;
  }

  group(groupId: GroupId): Group | undefined {
    return this.#groups.get(groupId);
  }

  async removeGroup(groupId: GroupId, recorded: () => Promise<void> = async () => {}): Promise<void> {
    const runner = this.#groups.get(groupId);
    if (runner !== undefined) {
      this.#groups.delete(groupId);
      this.#wheel.remove(runner);
      this.#heartbeats.groupsChanged();
      await runner.close('the replica was removed');
    }
    await recorded();
    assert(!this.#groups.has(groupId), `group ${groupId} was created again while its log was being removed`);
    // Records of this group in progress are before the removal in the log, which keeps the order of its calls.
    this.#given.log.removeGroup(groupId);
    this.#write([], []);
    await this.logDurable();
  }

  logDurable(): Promise<void> {
    if (this.#durable === this.#appended) return Promise.resolve();
    if (this.#logFailure !== undefined) return Promise.reject(this.#logFailure);
    return new Promise((resolve, reject) => this.#durableWaiters.push({ upTo: this.#appended, resolve, reject }));
  }

  logFailed(error: Error): void {
    if (this.#logFailure !== undefined) return;
    this.#logFailure = error;
    this.#fail(error);
    for (const { reject } of this.#durableWaiters.splice(0)) reject(error);
  }

  stats(): Readonly<HostStats> {
    this.#stats.entryCacheBytes = this.#entryCache.bytes;
    return this.#stats;
  }

  get stopped(): boolean {
    return this.#state === 'stopped';
  }

  get logHangs(): boolean {
    return this.#logWatch.hangs;
  }

  inFlight(): HostInFlight {
    const sum = {
      reads: 0,
      snapshotsOut: this.#sender.inFlight,
      snapshotsIn: this.#intake.inFlight,
      receiving: 0,
      logHolds: 0,
      durableWaits: this.#durableWaiters.length,
    };
    for (const { inFlight } of this.#groups.values()) {
      sum.reads += inFlight.reads;
      sum.receiving += inFlight.receiving;
      sum.logHolds += inFlight.logHolds;
    }
    return sum;
  }

  async stop(): Promise<void> {
    this.#halt();
    await this.#given.transport.stop();
    await this.#sender.stop();
    await Promise.all([...this.#groups.values()].map((runner) => runner.close('the node is stopping')));
    if (this.#failed) return;
    await this.logDurable().catch((error: unknown) => {
      if (error !== this.#logFailure) throw error; // the caller of `logFailed` knows it
    });
  }

  // ---------------------------------------------------------------------------------------------- turn

  #send({ frames }: Outbox): void {
    for (const [node, messages] of frames) {
      this.#stats.framesSent++;
      this.#stats.messagesSent += messages.length;
      this.#given.transport.send(node, messages);
    }
  }

  #append({ appends, marks }: Outbox, durable: () => void): void {
    if (appends.length === 0) return durable();
    this.#stats.appends++;
    this.#write(appends, marks, durable);
  }

  #write(appends: Outbox['appends'], marks: Outbox['marks'], durable?: () => void): void {
    this.#appended++;
    const { times, clock } = this.#given;
    const startMs = times === undefined ? 0 : clock.monotonicMs();
    this.#given.log.append(appends, () => {
      times?.appended(clock.monotonicMs() - startMs);
      this.#durable++;
      this.#logWatch.moved();
      this.#guard(() =>
        loopSection('logDone', () => {
          for (const { owner, mark } of marks) owner.persisted(mark); // H2
          // A leader waits for the acknowledgement of this batch. If further batches are in progress, their
          // acknowledgements go together.
          if (this.#durable === this.#appended) this.#turns.hurry();
          durable?.();
        }),
      );
      this.#resolveDurable();
    });
  }

  #resolveDurable(): void {
    while ((this.#durableWaiters[0]?.upTo ?? Number.POSITIVE_INFINITY) <= this.#durable) {
      this.#durableWaiters.shift()?.resolve();
    }
  }

  // ---------------------------------------------------------------------------------------------- input

  #tick(count: number): void {
    const now = this.#leaseClock.now();
    this.#leaseClock.ticked(now);
    this.#time.now = now;
    this.#stats.wakeUps++;
    for (let i = 0; i < count; i++) {
      this.#stats.ticks++;
      this.#wheel.advance(++this.#time.ticks);
    }
    this.#logWatch.ticked(count, this.#durable < this.#appended, this.#groups.values());
    this.#tellSilence(count);
    this.#reachPeers(count);
    this.#ticksSinceBeat += count;
    if (this.#ticksSinceBeat < this.#options.heartbeatTicks) return;
    this.#ticksSinceBeat = 0;
    this.#heartbeats.beat(now); // at once, not in a turn: authority must not wait, however much work groups have
  }

  /** Leases are void after a pause that no tick covers (lease-clock.ts K2), so with leases each tick is made. */
  #nextDue(): number {
    if (this.#options.leaseReads) return 1;
    return this.#wheel.ticksToNext(this.#heartbeats.isSending ? this.#ticksToBeat : this.#quietTicksMax);
  }

  get #ticksToBeat(): number {
    return Math.max(1, this.#options.heartbeatTicks - this.#ticksSinceBeat);
  }

  /** H6. */
  get #quietTicksMax(): number {
    const { electionTicks, catchUpTicksMax } = this.#options;
    return Math.min(electionTicks - catchUpTicksMax, WHEEL_TICKS_MAX);
  }

  /**
   * Followers do not communicate with each other until their leader is gone. Connecting only then would take as long as
   * the rest of an election.
   */
  #reachPeers(ticks: number): void {
    const { transport } = this.#given;
    this.#ticksSinceReach += ticks;
    if (transport.reach === undefined || this.#ticksSinceReach < REACH_TICKS) return;
    this.#ticksSinceReach = 0;
    for (const runner of this.#reachedFor.next(REACH_GROUPS)) {
      for (const node of runner.peerNodes()) this.#peersFound.add(node);
    }
    this.#peersFound.delete(this.#given.nodeId);
    for (const node of new Set([...this.#peers, ...this.#peersFound])) transport.reach(node);
    if (!this.#reachedFor.atStart) return;
    this.#peers = this.#peersFound;
    this.#peersFound = new Set();
  }

  /** Checked rarely, so that it adds no cost per group and tick. */
  #tellSilence(ticks: number): void {
    const { silenceTicks } = this.#options;
    this.#ticksSinceSilenceCheck += ticks;
    if (this.#ticksSinceSilenceCheck < silenceTicks) return;
    this.#ticksSinceSilenceCheck = 0;
    for (const runner of this.#groups.values()) {
      if (runner.silentTicks >= silenceTicks) this.#given.onSilence?.(runner);
    }
  }

  #voidLeases(nowMs: number): void {
    if (!this.#options.leaseReads) return;
    for (const runner of this.#groups.values()) runner.voidLease(nowMs);
  }

  #receive(from: NodeId, messages: readonly GroupMessage[]): void {
    for (const item of messages) {
      this.#stats.messagesReceived++;
      const runner = this.#groups.get(item.groupId);
      if (runner === undefined || runner.replicaId !== item.message.to) {
        this.#stats.messagesUnknown++;
        this.#given.onUnknownGroup?.(from, item);
      } else {
        runner.receive(from, item.message);
      }
    }
  }

  #receiveHeartbeat(from: NodeId, frame: HeartbeatFrame): void {
    if (frame.type === 'heartbeat') this.#stats.heartbeatsReceived++;
    else this.#stats.heartbeatRepliesReceived++;
    this.#heartbeats.receive(from, frame);
  }

  #sendHeartbeat(node: NodeId, frame: HeartbeatFrame): void {
    if (frame.type === 'heartbeat') {
      this.#stats.heartbeatsSent++;
      this.#stats.heartbeatGroupsSent += frame.groups.length;
    } else {
      this.#stats.heartbeatRepliesSent++;
      this.#stats.heartbeatsRefused += frame.refused.length;
    }
    this.#given.transport.sendHeartbeat(node, frame);
  }

  #unreachable(node: NodeId): void {
    for (const runner of this.#groups.values()) runner.nodeUnreachable(node);
  }

  /** With leases, followers keep their promises to a leader that may be alive (core/lease.ts E8). */
  #gone(node: NodeId): void {
    if (this.#options.leaseReads) return;
    this.#logger.info({ peer: node }, 'the process of a peer has ended: its leaders are replaced at once');
    for (const runner of this.#groups.values()) runner.nodeGone(node);
  }

  // ---------------------------------------------------------------------------------------------- end

  /** Runs an input, at the tick of its time. */
  #guard(work: () => void): void {
    this.#ticker.sync();
    this.#guarded(work);
  }

  #guarded(work: () => void): void {
    if (this.#state !== 'running') return;
    try {
      work();
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    if (this.#state === 'stopped') return;
    this.#failed = true;
    this.#halt();
    this.#given.onFatal(error);
  }

  #halt(): void {
    this.#state = 'stopped';
    this.#ticker.stop();
    this.#waitingAppends.stop();
    this.#stalls.stop();
  }
}
