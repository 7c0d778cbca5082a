/**
 * Makes the schedule of a failing run smaller while it still breaks the same promise: halves of it are left out, then
 * quarters, and so on down to single faults (delta debugging, Zeller & Hildebrandt, "Simplifying and isolating
 * failure-inducing input", 2002).
 */

import type { SimResult } from './cli/simulation.ts';
import type { FaultEvent } from './faults/fault.ts';

const RUNS_MAX = 300;

export interface Shrunk {
  readonly events: readonly FaultEvent[];
  readonly runs: number;
}

export async function shrink(
  run: (events: readonly FaultEvent[]) => Promise<Pick<SimResult, 'failure'>>,
  events: readonly FaultEvent[],
  property: string,
): Promise<Shrunk> {
  let kept = events;
  let runs = 0;
  const fails = async (candidate: readonly FaultEvent[]): Promise<boolean> => {
    runs++;
    return (await run(candidate)).failure?.property === property;
  };
  if (kept.length > 0 && (await fails([]))) return { events: [], runs };
  for (let size = Math.ceil(kept.length / 2); size >= 1 && runs < RUNS_MAX; ) {
    let dropped = false;
    for (let at = 0; at < kept.length && runs < RUNS_MAX; ) {
      const candidate = [...kept.slice(0, at), ...kept.slice(at + size)];
      if (candidate.length < kept.length && (await fails(candidate))) {
        kept = candidate;
        dropped = true;
      } else {
        at += size;
      }
    }
    if (size === 1 && !dropped) break;
    size = size === 1 ? 1 : Math.ceil(size / 2);
  }
  return { events: kept, runs };
}
