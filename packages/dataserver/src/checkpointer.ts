import type { Clock, Engine, Logger, Timer } from '@remora/base';
import type { Group, LogPosition } from '@remora/raft';

export interface CheckpointOptions {
  /** A checkpoint begins at least this often while there are changes to write, or a log that could be cut. */
  readonly intervalMs: number;
  /** … and when this much has changed in memory. */
  readonly bytes: number;
}

/**
 * Writes what the participant keeps in memory into the engine; the returned function is called once that is durable.
 */
export type CheckpointParticipant = () => () => void;

/**
 * Whether a participant has moved since it was last staged although the engine did not change: commands that change
 * nothing (a busy lock, a failed compare) lengthen the log all the same.
 */
export type HasMoved = () => boolean;

/** A replica whose state is checkpointed together with its applied position. */
export interface CheckpointedReplica {
  /** Writes what the replica keeps in memory into the engine. */
  stage(): void;
  readonly applied: () => LogPosition;
  /** Whether a snapshot is replacing its rows (CP3); absent: never. */
  readonly replacing?: () => boolean;
}

/**
 * The number of entries applied since the last checkpoint that makes one due even if they changed nothing: the log is
 * long.
 */
const LOG_ENTRIES_UNCUT = 1_000;

/** The interval at which the size of the waiting changes is checked. */
const POLL_MS = 250;
/** The same while nothing waits: an idle node is not woken for nothing. */
const IDLE_POLL_MS = 1_000;

/**
 * Decides when the engine is checkpointed, and reports to the groups of a node what has become durable, so that their
 * logs may be cut.
 *
 * CP1. All participants are staged in the step in which the engine freezes its state, so one checkpoint holds each
 *      group's data together with its applied position (traps 15).
 * CP2. A log is cut only after the checkpoint that covers it is durable.
 * CP3. A replica whose rows a snapshot is replacing does not take part in a checkpoint; the others do.
 * CP4. As long as the engine takes checkpoints, participants are staged in each, also after `stop`: a checkpoint that a
 *      caller waits for may begin after the last one, when more has been applied.
 * CP5. Only one checkpoint is in progress at a time, even if a caller that sees its end asks for another before the
 *      waiting one has begun. With two at once, the first would report as durable what the second has only staged
 *      (CP2).
 */
export class Checkpointer {
  readonly #engine: Engine;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #options: CheckpointOptions;
  readonly #participants = new Map<CheckpointParticipant, HasMoved>();
  #staged: (() => void)[] = [];
  #running: Promise<void> | undefined;
  #next: Promise<void> | undefined;
  #lastMs: number;
  /** When all participants were asked last whether they have moved. */
  #askedMs = Number.NEGATIVE_INFINITY;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(
    engine: Engine,
    deps: { readonly clock: Clock; readonly logger: Logger; readonly options: CheckpointOptions },
  ) {
    this.#engine = engine;
    this.#clock = deps.clock;
    this.#logger = deps.logger;
    this.#options = deps.options;
    this.#lastMs = deps.clock.monotonicMs();
    engine.onCheckpoint(() => {
      this.#staged = [...this.#participants.keys()].map((stage) => stage());
    });
    this.#arm();
  }

  add(participant: CheckpointParticipant, hasMoved: HasMoved = () => false): () => void {
    this.#participants.set(participant, hasMoved);
    return () => this.#participants.delete(participant);
  }

  /** Checkpoints a replica, and lets its group cut the log up to what is durable (CP2). */
  addGroup(group: Pick<Group, 'checkpointed'>, replica: CheckpointedReplica): () => void {
    let staged = replica.applied();
    return this.add(
      () => {
        if (replica.replacing?.() === true) return () => {};
        replica.stage();
        const position = replica.applied();
        staged = position;
        return () => group.checkpointed(position);
      },
      () => replica.replacing?.() !== true && replica.applied().index - staged.index >= LOG_ENTRIES_UNCUT,
    );
  }

  /** Resolves when everything applied before the call is durable in the engine. */
  run(): Promise<void> {
    if (this.#running === undefined) return this.#start();
    // The current checkpoint may have frozen its state before this call: callers from now on share the next one.
    this.#next ??= this.#running.then(() => this.#start());
    return this.#next;
  }

  #start(): Promise<void> {
    const startedMs = this.#clock.monotonicMs();
    const { bytes, keys } = this.#engine.pending();
    this.#running = this.#engine.checkpoint().then(() => {
      this.#running = this.#next; // CP5
      this.#next = undefined;
      this.#lastMs = this.#clock.monotonicMs();
      const staged = this.#staged;
      this.#staged = [];
      for (const durable of staged) durable();
      this.#logger.debug({ bytes, keys, tookMs: Math.round(this.#lastMs - startedMs) }, 'checkpoint');
    });
    return this.#running;
  }

  #arm(): void {
    if (this.#stopped) return;
    const delayMs = this.#engine.pending().keys > 0 ? POLL_MS : IDLE_POLL_MS;
    this.#timer = this.#clock.setTimer(delayMs, () => {
      this.#arm();
      // A checkpoint that fails stops the node; the engine has said why.
      if (this.#running === undefined && this.#due()) this.run().catch(() => {});
    });
  }

  #due(): boolean {
    const { bytes, keys } = this.#engine.pending();
    if (bytes >= this.#options.bytes) return true;
    const nowMs = this.#clock.monotonicMs();
    const { intervalMs } = this.#options;
    if (nowMs - this.#lastMs < intervalMs) return false;
    if (keys > 0) return true;
    if (nowMs - this.#askedMs < intervalMs) return false; // a node may have thousands of participants
    this.#askedMs = nowMs;
    for (const hasMoved of this.#participants.values()) if (hasMoved()) return true;
    return false;
  }

  /**
   * Takes a last checkpoint, so that the next start has no log to replay; after that, none begins automatically (CP4).
   */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.run();
  }
}
