import type { Clock, Engine, Logger, Timer } from '@remora/base';

export interface CheckpointOptions {
  /** A checkpoint begins at least this often while there is something to write. */
  readonly intervalMs: number;
  /** … and when this much has changed in memory. */
  readonly bytes: number;
}

/** Puts what it keeps in memory into the engine; the function it returns is called once that is durable. */
export type CheckpointParticipant = () => () => void;

/** How often the size of what waits is looked at. */
const POLL_MS = 250;

/**
 * Decides when the engine is checkpointed, and tells the groups of a node what has become durable by it, so that
 * their logs may be cut.
 *
 * CP1. All participants are staged in the step in which the engine freezes its state, so one checkpoint holds each
 *      group's data together with its applied position (traps 15).
 * CP2. A log is cut only after the checkpoint that covers it is durable.
 */
export class Checkpointer {
  readonly #engine: Engine;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #options: CheckpointOptions;
  readonly #participants = new Set<CheckpointParticipant>();
  readonly #unhook: () => void;
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
    this.#unhook = engine.onCheckpoint(() => {
      this.#staged = [...this.#participants].map((stage) => stage());
    });
    this.#arm();
  }

  add(participant: CheckpointParticipant): () => void {
    this.#participants.add(participant);
    return () => this.#participants.delete(participant);
  }

  /** Resolves when everything applied before the call is durable in the engine. */
  run(): Promise<void> {
    if (this.#running === undefined) return this.#start();
    // The one under way may have frozen before the call: callers from now on share the one after it.
    this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      return this.#start();
    });
    return this.#next;
  }

  #start(): Promise<void> {
    const startedMs = this.#clock.monotonicMs();
    const { bytes, keys } = this.#engine.pending();
    this.#running = this.#engine.checkpoint().then(() => {
      this.#running = undefined;
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
    this.#timer = this.#clock.setTimer(POLL_MS, () => {
      this.#arm();
      if (this.#running === undefined && this.#due()) void this.run();
    });
  }

  #due(): boolean {
    const { bytes, keys } = this.#engine.pending();
    if (bytes >= this.#options.bytes) return true;
    return keys > 0 && this.#clock.monotonicMs() - this.#lastMs >= this.#options.intervalMs;
  }

  /** A last checkpoint, so that the next start has no log to replay; then none any more. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.run();
    this.#unhook();
  }
}
