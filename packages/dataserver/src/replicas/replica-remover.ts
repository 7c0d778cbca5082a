/**
 * Deletes the replicas that were removed from their range.
 *
 * RM1. First the end is made durable: one checkpoint holds the replica's last state and the fact that it has ended.
 *      Only then is its log deleted, durably, and then its rows (design §6 ▸). After a crash before that checkpoint the
 *      replica runs again; after a later crash it never runs, and its removal continues at the next start.
 * RM2. Rows are deleted in bounded steps, the state row last: while it exists, its bounds say what may be left.
 * RM3. From the beginning to the end of a removal, no replica that shares keys with it is created (`removing`).
 * RM4. Ranges that were split off the replica may still have to take over outcomes from its rows, with a checkpoint in
 *      which they take part (range/reshape/splits.ts S8). So the removal waits for them: they take part in the
 *      checkpoint that records the end.
 */
import { assert, type Engine, InvariantError, type Logger, type Row, type Span } from '@remora/base';
import { schema, storedRow } from '@remora/protocol';
import type { GroupId, RaftHost, RecoveredGroup } from '@remora/raft';
import type { Checkpointer } from '../checkpointer.ts';
import { rangeSpans, spansOverlap } from '../state/bounds.ts';
import { allRemovalsSpan, rangeIdOfOwnKey, removalKey, stateKey } from '../state/keys.ts';
import type { HeldReplicas } from './held-replicas.ts';

export interface RemoverDeps {
  readonly engine: Engine;
  readonly checkpointer: Checkpointer;
  readonly host: RaftHost;
  readonly logger: Logger;
  /** The log's contents when the node started: nothing of a removed replica stays in memory. */
  readonly recovered: Map<GroupId, RecoveredGroup>;
}

/** What a running replica leaves when it ends. */
interface LastState {
  /** Called once apply has stopped; resolves when no range that was split off the replica is about to begin (RM4). */
  readonly settled: () => Promise<void>;
  /**
   * Called once apply has stopped, in the step that records the end: stages the replica's last state, and takes it out
   * of further checkpoints.
   */
  readonly stage: () => void;
  /**
   * The current bounds of the range: an apply or an install that was running at the end may still change them (RM3).
   */
  readonly span: () => Span;
}

/** A replica that is being deleted. */
export interface Removal {
  readonly rangeId: number;
  readonly replicaId: number;
  /** The bounds of its range at the end. */
  readonly span: Span;
  /** Absent after a restart: only what was staged before is left. */
  readonly last?: LastState;
}

const MARKER = storedRow(
  'the marker of a removal',
  schema.struct('marker of a removal', { replicaId: schema.field(schema.uint, 'The replica whose rows go.') }),
  { 1: 1 },
);

export class ReplicaRemover {
  readonly #deps: RemoverDeps;
  readonly #held: HeldReplicas;
  /** By range (RM3). */
  readonly #removing = new Map<number, () => Span>();
  #stopped = false;

  constructor(deps: RemoverDeps, held: HeldReplicas) {
    this.#deps = deps;
    this.#held = held;
  }

  /** Deletes markers whose rows were all deleted before a crash. Called once, before anything is removed. */
  clean(): void {
    const { engine } = this.#deps;
    for (const { key } of engine.scanResident(allRemovalsSpan())) {
      if (engine.get(stateKey(rangeIdOfOwnKey(key))) === undefined) engine.delete(key);
    }
  }

  /** Returns the range that is being removed here and has keys of the span; undefined if there is none (RM3). */
  removing(span: Span): number | undefined {
    for (const [rangeId, theirs] of this.#removing) if (spansOverlap(span, theirs())) return rangeId;
    return undefined;
  }

  /** Resolves when nothing of the replica is left. Rejects when the node must stop. */
  async remove(removal: Removal): Promise<void> {
    const { rangeId, replicaId, span, last } = removal;
    const { recovered, host, logger } = this.#deps;
    this.#removing.set(rangeId, last?.span ?? (() => span));
    recovered.delete(rangeId);
    try {
      await host.removeGroup(rangeId, () => this.#record(removal));
      await this.#clear(rangeId, replicaId);
    } catch (error) {
      // The node is shutting down: the next start continues.
      if (this.#stopped) return new Promise(() => {});
      throw error;
    }
    this.#removing.delete(rangeId);
    logger.info({ range: rangeId, replica: replicaId }, 'removed a replica');
  }

  /** RM1. */
  async #record({ rangeId, replicaId, last }: Removal): Promise<void> {
    await last?.settled(); // RM4
    if (last !== undefined) last.stage();
    else if (this.#held.of(rangeId)?.ended === true) return; // durable since before the start
    this.#held.ends(rangeId, replicaId);
    await this.#deps.checkpointer.run();
  }

  /** RM2. */
  #clear(rangeId: number, replicaId: number): Promise<void> {
    const span = this.#removing.get(rangeId)?.();
    assert(span !== undefined, 'the bounds of a removal in progress are known');
    return this.#deps.engine.rebuild({
      spans: rangeSpans(rangeId, span),
      marker: { key: removalKey(rangeId), value: MARKER.encode({ replicaId }) },
      rows: nothing(),
      replaced: () => {},
      progress: () => {},
      failure: (cause) => failure(rangeId, replicaId, cause),
    });
  }

  /** The node is stopping: the next start finishes what is in progress. */
  stop(): void {
    this.#stopped = true;
  }
}

async function* nothing(): AsyncGenerator<readonly Row[]> {}

function failure(rangeId: number, replicaId: number, cause: unknown): InvariantError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  const message = `cannot delete the rows of replica ${replicaId} of range ${rangeId}: ${reason}. The next start continues`;
  return new InvariantError(message, { cause });
}
