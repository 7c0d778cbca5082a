/**
 * Makes the schedule of a failing run smaller while the run still breaks the same promise. It removes halves of the
 * schedule, then quarters, and so on down to single faults (delta debugging, Zeller & Hildebrandt, "Simplifying and
 * isolating failure-inducing input", 2002).
 */

import type { SimResult } from './cli/simulation.ts';
import type { FaultEvent } from './faults/fault.ts';

export const SHRINK_RUNS_MAX = 300;

export interface Shrunk {
  readonly events: readonly FaultEvent[];
  readonly runs: number;
}

export interface ShrinkTask {
  readonly run: (events: readonly FaultEvent[]) => Promise<Pick<SimResult, 'failure'>>;
  readonly events: readonly FaultEvent[];
  /** The property that every smaller schedule must break too. */
  readonly property: string;
  /** Asked before each run. Returns false if there is no time for another run. */
  readonly mayGoOn: () => boolean;
  /** Called after each run. */
  readonly progress: (now: Shrunk) => void;
}

export async function shrink({ run, events, property, mayGoOn, progress }: ShrinkTask): Promise<Shrunk> {
  let kept = events;
  let runs = 0;
  const goesOn = (): boolean => runs < SHRINK_RUNS_MAX && mayGoOn();
  /** Accepts the candidate if it fails in the same way. */
  const take = async (candidate: readonly FaultEvent[]): Promise<boolean> => {
    runs++;
    const fails = (await run(candidate)).failure?.property === property;
    if (fails) kept = candidate;
    progress({ events: kept, runs });
    return fails;
  };
  if (kept.length > 0 && goesOn()) await take([]);
  for (let size = Math.ceil(kept.length / 2); size >= 1 && goesOn(); ) {
    let dropped = false;
    for (let at = 0; at < kept.length && goesOn(); ) {
      if (await take([...kept.slice(0, at), ...kept.slice(at + size)])) dropped = true;
      else at += size;
    }
    if (size === 1 && !dropped) break;
    size = size === 1 ? 1 : Math.ceil(size / 2);
  }
  return { events: kept, runs };
}
