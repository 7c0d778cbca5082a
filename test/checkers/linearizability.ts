/**
 * Whether a history can be explained by a model that does one operation at a time, each between its begin and its end.
 *
 * Wing & Gong's search ("Testing and verifying concurrent objects", 1993) with Lowe's just-in-time linearization and
 * memory of configurations ("Testing for linearizability", 2017), per key (Horn & Kroening, "Faster linearizability
 * checking via P-compositionality", 2015), in the iterative form of Porcupine.
 *
 * G1. An operation may come next when it began before the first end among those not yet placed. All that ended must
 *     be placed; those of unknown outcome may be.
 * G2. One that may come next, fits and only observes (D2) is placed at once, before any other and without alternatives:
 *     from any explanation that has it later it can be moved here. A write that happens to change nothing may not:
 *     later it might.
 * G3. Those of unknown outcome are tried only where no other fits, and only where they change something. Of several
 *     that asked the same, the one that began first goes first: the others may take effect whenever it may.
 * G4. A configuration (what is placed, and the state) that failed once is not tried again. Configurations are compared
 *     in full: a verdict never rests on a hash.
 * G5. A state that one of those not placed needs is left only if something can lead back to it. Where written values
 *     are unique, this keeps the search close to straight.
 * G6. Where an operation needs a state to which nothing can have led by then, there is no need to search.
 * G7. Memory and time have bounds: so many configurations, and so many steps for each. Beyond them the verdict is
 *     `undecided`.
 */
import { explain } from './explain.ts';
import { type HistoryRecord, partitionByKey } from './history.ts';
import type { Model } from './models.ts';
import { search } from './search.ts';

export interface CheckOptions {
  /** Configurations to look at per key before giving up with `undecided` (G7); each takes some 100 bytes. */
  readonly statesMax?: number;
}

export interface Verdict {
  readonly result: 'ok' | 'violation' | 'undecided';
  /** For people: what cannot be explained and what went on at that time; empty when all is well. */
  readonly explanation: string;
  /** Keys whose history is at fault, or could not be decided. */
  readonly keys: readonly string[];
  /** Configurations looked at, in all. */
  readonly states: number;
}

const STATES_MAX = 1_000_000;

/** Checks every key by itself. A violation of one key decides, even when another is undecided. */
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
