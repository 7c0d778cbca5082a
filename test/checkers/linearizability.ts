/**
 * Checks whether a model that performs one operation at a time, each between its beginning and its end, can explain a
 * history.
 *
 * Wing & Gong's search ("Testing and verifying concurrent objects", 1993) with Lowe's just-in-time linearization and
 * memory of configurations ("Testing for linearizability", 2017), per key (Horn & Kroening, "Faster linearizability
 * checking via P-compositionality", 2015), in the iterative form of Porcupine.
 *
 * G1. An operation may come next if it began before the first end among the operations that are not placed yet. All
 *     operations that ended must be placed; those of unknown outcome may be placed.
 * G2. If an operation may come next, fits, and only observes (D2), it is placed at once, before any other and without
 *     alternatives: in any explanation that has it later, it can be moved here. A write that happens to change nothing
 *     here is not treated so, because it might change something later.
 * G3. Operations of unknown outcome are tried only if no other operation fits, and only if they change something. Of
 *     several equal ones, the one that began first is placed first, because the others may take effect at any later
 *     time.
 * G4. A configuration (the placed operations and the state) that failed once is not tried again. Configurations are
 *     compared in full: a verdict never depends on a hash.
 * G5. If an operation that is not placed needs a state, the search leaves this state only if something can lead back to
 *     it. With unique written values, this keeps the search almost free of backtracking.
 * G6. If an operation needs a state that nothing can have led to by then, no search is needed.
 * G7. Memory and time are limited: by the number of configurations, and by the number of steps for each. Beyond these
 *     limits the verdict is `undecided`.
 */
import { explain } from './explain.ts';
import { type HistoryRecord, partitionByKey } from './history.ts';
import type { Model } from './models.ts';
import { search } from './search.ts';

export interface CheckOptions {
  /**
   * The number of configurations to examine per key before the verdict is `undecided` (G7). Each takes some 100 bytes.
   */
  readonly statesMax?: number;
}

export interface Verdict {
  readonly result: 'ok' | 'violation' | 'undecided';
  /** For people: what cannot be explained, and the concurrent operations. Empty if all is well. */
  readonly explanation: string;
  /** Keys whose history is faulty or could not be decided. */
  readonly keys: readonly string[];
  /** The total number of examined configurations. */
  readonly states: number;
}

const STATES_MAX = 1_000_000;

/** Checks every key separately. A violation of one key decides the verdict, even if another key is undecided. */
export function checkLinearizable<S>(
  model: Model<S>,
  history: readonly HistoryRecord[],
  options: CheckOptions = {},
): Verdict {
  const statesMax = options.statesMax ?? STATES_MAX;
  const violated: string[] = [];
  const undecided: string[] = [];
  let explanation = '';
  let states = 0;
  for (const [key, ops] of partitionByKey(history)) {
    const found = search(model, ops, { statesMax });
    states += found.states;
    if (found.result === 'undecided') undecided.push(key);
    if (found.result !== 'violation') continue;
    violated.push(key);
    if (explanation === '') explanation = explain(model, { key, ops, statesMax });
  }
  if (violated.length > 0) return { result: 'violation', explanation, keys: violated, states };
  if (undecided.length === 0) return { result: 'ok', explanation, keys: [], states };
  const text = `undecided after ${statesMax} configurations: ${undecided.join(', ')}; give it more, or shorter histories`;
  return { result: 'undecided', explanation: text, keys: undecided, states };
}
