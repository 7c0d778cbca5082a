import {
  type Clock,
  type ClusterVersion,
  type ErrorCode,
  type Logger,
  type Random,
  ServiceError,
  type Timer,
} from '@remora/base';
import {
  type AuthImage,
  type ClusterView,
  type HealthCondition,
  type JoinReply,
  type LeaderClocks,
  masterHeartbeat,
  masterJoin,
  masterRangeChanged,
  type NodeDescriptor,
  type NodeHeartbeat,
  type NodeHeartbeatReply,
  type NodeTask,
  type RangeDescriptor,
  type SplitPolicy,
} from '@remora/protocol';
import type { MasterFinder } from '../masters/master-finder.ts';
import type { ClockReading } from './clock-comparison.ts';

export interface AgentDeps {
  /** Shared with all other callers of the masters on this node: what one of them learns serves all. */
  readonly finder: MasterFinder;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /**
   * The contents of the next heartbeat. `complete`: the masters may not know the last one, so it has the reports of all
   * ranges.
   */
  readonly report: (complete: boolean) => Omit<NodeHeartbeat, 'nodeId' | 'incarnation' | 'viewVersion'>;
  /** Ranges with a replica here that this view does not know, or whose membership or bounds have changed since. */
  readonly changedSince: (view: ClusterView) => readonly RangeDescriptor[];
  readonly onTask: (task: NodeTask) => void;
  readonly onView: (view: ClusterView, incarnations: NodeHeartbeatReply['incarnations']) => void;
  /** The version in force; undefined if the masters are of a release without versions. */
  readonly onVersion: (version: ClusterVersion | undefined) => void;
  readonly onSplitPolicy: (policy: SplitPolicy) => void;
  /** Receives users and roles, if they are newer than those of the report that was sent at `sentMs`. */
  readonly onAuth: (image: AuthImage | undefined, sentMs: number) => void;
  /** Receives what the clocks of the masters' leader showed, to compare them with those of this node. */
  readonly onClocks: (reading: ClockReading) => void;
  /** Receives the problems that the masters find in the cluster. */
  readonly onConditions: (conditions: readonly HealthCondition[]) => void;
  /** The cluster will never accept this node (wiped data, another cluster): the process should end. */
  readonly onRefused: (error: ServiceError) => void;
}

const CALL_TIMEOUT_MS = 1_000;
/** Errors that end the attempts of a node without an id. */
const ENDS_JOINING: ReadonlySet<ErrorCode> = new Set(['NODE_CONFLICT', 'WRONG_CLUSTER', 'VERSION_REFUSED']);
const RETRY_MIN_MS = 40;
const RETRY_MAX_MS = 250;
const HEARTBEAT_MS = 1_000;
/** The minimum distance of heartbeats, however often one is hurried: strangers may be the cause. */
const HEARTBEAT_HURRIED_MS = 100;
/** The interval until the cluster has a range with a leader, so that it starts quickly. */
const HEARTBEAT_STARTING_MS = 50;
/**
 * The interval while the node has tasks: they take several steps, some of which wait for copies, or for other ranges.
 */
const HEARTBEAT_BUSY_MS = 250;
/** The interval of log messages while no master answers: the wait is unlimited, because the cluster may start later. */
const SILENCE_LOG_MS = 10_000;

/** A node's client of the masters: joins, reports, and receives tasks and the view of the cluster in the answers. */
export class NodeAgent {
  readonly #deps: AgentDeps;
  #descriptor: NodeDescriptor;
  #view: ClusterView | undefined;
  #viewVersion = '';
  /** The last heartbeat was answered. */
  #known = false;
  #tries = 0;
  /** The next heartbeat waits for its regular time. */
  #resting = false;
  #beganMs = Number.NEGATIVE_INFINITY;
  /** Since when no master has answered, and when that was last logged. */
  #silence: { readonly sinceMs: number; saidMs: number } | undefined;
  #joined = false;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(deps: AgentDeps, descriptor: NodeDescriptor) {
    this.#deps = deps;
    this.#descriptor = descriptor;
  }

  get view(): ClusterView | undefined {
    return this.#view;
  }

  get joined(): boolean {
    return this.#joined;
  }

  /** Asks the cluster for an id before the node's other parts start: only for nodes outside the initial cluster. */
  requestId(signal: AbortSignal): Promise<JoinReply> {
    return new Promise((resolve, reject) => {
      const attempt = (): void => {
        if (signal.aborted) return reject(signal.reason);
        this.#callJoin((error, reply) => {
          if (reply !== undefined) {
            this.#descriptor = { ...this.#descriptor, nodeId: reply.nodeId };
            resolve(reply);
          } else if (error !== undefined && ENDS_JOINING.has(error.code)) reject(error);
          else this.#later(attempt, error);
        });
      };
      attempt();
    });
  }

  start(): void {
    this.#join();
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** The node needs an answer from the masters: the next heartbeat is sent at once, or soon after the last. */
  hurry(): void {
    if (!this.#resting || this.#stopped) return;
    const sinceMs = this.#deps.clock.monotonicMs() - this.#beganMs;
    this.#timer?.cancel();
    this.#rest(Math.max(0, HEARTBEAT_HURRIED_MS - sinceMs));
  }

  #join(): void {
    this.#callJoin((error, reply) => {
      if (this.#stopped) return;
      if (reply !== undefined) {
        this.#joined = true;
        this.#answered();
        this.#beat();
      } else if (error?.code === 'NODE_CONFLICT' || error?.code === 'WRONG_CLUSTER') this.#deps.onRefused(error);
      else this.#later(() => this.#join(), error);
    });
  }

  #callJoin(done: (error: ServiceError | undefined, reply: JoinReply | undefined) => void): void {
    const { nodeId, ...descriptor } = this.#descriptor;
    this.#deps.finder.call(masterJoin, { nodeId, descriptor }, { timeoutMs: CALL_TIMEOUT_MS }, done);
  }

  #rest(ms: number): void {
    this.#resting = true;
    this.#after(ms, () => this.#beat());
  }

  #beat(): void {
    this.#resting = false;
    const sentMs = this.#deps.clock.monotonicMs();
    this.#beganMs = sentMs;
    const { nodeId, incarnation } = this.#descriptor;
    const heartbeat = { nodeId, incarnation, ...this.#deps.report(!this.#known), viewVersion: this.#viewVersion };
    this.#known = false;
    this.#deps.finder.call(masterHeartbeat, heartbeat, { timeoutMs: CALL_TIMEOUT_MS }, (error, reply) => {
      if (this.#stopped) return;
      if (reply === undefined) return this.#missed(error ?? new ServiceError('INTERNAL', 'no answer'));
      const view = reply.view ?? this.#view;
      if (view === undefined) return this.#missed(new ServiceError('INTERNAL', 'the answer has no view'));
      this.#answered();
      this.#known = true;
      this.#view = view;
      this.#viewVersion = reply.viewVersion;
      this.#deps.finder.viewed(view);
      this.#deps.onVersion(reply.clusterVersion);
      this.#deps.onAuth(reply.auth, sentMs);
      this.#deps.onView(view, reply.incarnations);
      this.#deps.onSplitPolicy(reply.splits);
      if (reply.clocks !== undefined) this.#deps.onClocks(this.#reading(reply.clocks, sentMs));
      this.#deps.onConditions(reply.conditions);
      for (const task of reply.tasks) this.#deps.onTask(task);
      this.#tellChanges(view);
      // Somebody waits until this node has confirmed the change (auth-rollout.ts AR1).
      this.#rest(reply.auth === undefined ? pauseAfter(reply.tasks, view) : HEARTBEAT_HURRIED_MS);
    });
  }

  #reading({ nodeId, wallMs, monotonicMs }: LeaderClocks, sentMs: number): ClockReading {
    const { clock } = this.#deps;
    return {
      ...{ leader: nodeId, leaderWallMs: wallMs, leaderMonotonicMs: monotonicMs },
      ...{ sentMs, receivedMs: clock.monotonicMs(), wallMs: clock.wallMs() },
    };
  }

  /** A lost report is repeated after the next heartbeat. */
  #tellChanges(view: ClusterView): void {
    for (const descriptor of this.#deps.changedSince(view)) {
      this.#deps.finder.channel().call(masterRangeChanged, descriptor, { timeoutMs: CALL_TIMEOUT_MS }, () => {});
    }
  }

  #missed(error: ServiceError): void {
    if (error.code === 'NODE_CONFLICT') return this.#deps.onRefused(error);
    const rejoin = error.details?.join === true;
    this.#later(() => (rejoin ? this.#join() : this.#beat()), error);
  }

  #answered(): void {
    this.#tries = 0;
    this.#silence = undefined;
  }

  #later(fn: () => void, error: ServiceError | undefined): void {
    this.#saySilence(error);
    const ceiling = Math.min(RETRY_MAX_MS, RETRY_MIN_MS * 2 ** Math.min(this.#tries++, 5));
    this.#after(ceiling / 2 + this.#deps.random.int(Math.ceil(ceiling / 2)), fn);
  }

  #saySilence(error: ServiceError | undefined): void {
    const { clock, logger, finder } = this.#deps;
    const nowMs = clock.monotonicMs();
    this.#silence ??= { sinceMs: nowMs, saidMs: nowMs };
    if (nowMs - this.#silence.saidMs < SILENCE_LOG_MS) return;
    this.#silence.saidMs = nowMs;
    logger.warn(
      {
        asked: finder.asked,
        seconds: Math.round((nowMs - this.#silence.sinceMs) / 1_000),
        error: error?.message,
      },
      'no master accepts this node yet; retrying',
    );
  }

  #after(delayMs: number, fn: () => void): void {
    if (this.#stopped) return;
    this.#timer = this.#deps.clock.setTimer(delayMs, fn);
  }
}

function pauseAfter(tasks: readonly NodeTask[], view: ClusterView): number {
  if (view.leaders.length === 0) return HEARTBEAT_STARTING_MS;
  return tasks.length > 0 ? HEARTBEAT_BUSY_MS : HEARTBEAT_MS;
}
