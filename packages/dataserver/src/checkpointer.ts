import type { Clock, Engine, Logger, Timer } from '@remora/base';
import type { Group, LogPosition } from '@remora/raft';

export interface CheckpointOptions {
  /** A checkpoint begins at least this often while there is something to write, or a log that could be cut by it. */
  readonly intervalMs: number;
  /** … and when this much has changed in memory. */
  readonly bytes: number;
}

/** Puts what it keeps in memory into the engine; the function it returns is called once that is durable. */
export type CheckpointParticipant = () => () => void;

/**
 * Whether a participant has moved since it was staged last although nothing in the engine shows it: commands that
 * change nothing (a lock that is busy, a compare that fails) lengthen the log all the same.
 */
export type HasMoved = () => boolean;

/** A replica whose state is checkpointed together with its applied position. */
export interface CheckpointedReplica {
  /** Puts what it keeps in memory into the engine. */
  stage(): void;
  readonly applied: () => LogPosition;
  /** Whether its rows are being replaced by a snapshot (CP3); absent: never. */
  readonly replacing?: () => boolean;
}

/** Entries applied since the last checkpoint that make one due although they changed nothing: the log is long. */
const LOG_ENTRIES_UNCUT = 1_000;

/** How often the size of what waits is looked at. */
const POLL_MS = 250;
/** The same while nothing waits: an idle node is not woken for nothing. */
const IDLE_POLL_MS = 1_000;

/**
 * Decides when the engine is checkpointed, and tells the groups of a node what has become durable by it, so that
 * their logs may be cut.
 *
 * CP1. All participants are staged in the step in which the engine freezes its state, so one checkpoint holds each
 *      group's data together with its applied position (traps 15).
 * CP2. A log is cut only after the checkpoint that covers it is durable.
 * CP3. A replica whose rows are being replaced by a snapshot has no part in a checkpoint; the others have.
 * CP4. As long as the engine takes checkpoints, participants are staged in each, the ones after `stop` too: one that
 *      somebody waits for may begin behind the last, when more has been applied.
 * CP5. One is under way at a time, also when somebody who hears of its end asks for another before the one that waits
 *      has begun: of two, the first would be told what the other has only staged (CP2).
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

  /** Checkpoints a replica, and lets its group's log go up to what is durable (CP2). */
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
    // The one under way may have frozen before the call: callers from now on share the one after it.
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
    if (this.#clock.monotonicMs() - this.#lastMs < this.#options.intervalMs) return false;
    return keys > 0 || [...this.#participants.values()].some((hasMoved) => hasMoved());
  }

  /** A last checkpoint, so that the next start has no log to replay; then none by itself any more (CP4). */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.run();
  }
}
