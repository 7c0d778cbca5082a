/** A bug that a simulation must find. */
import type { Mutation } from '../../../mutations/mutation.ts';

export interface PlantedBug extends Mutation {
  /** The part of the system with the bug. For tables that cover several parts. */
  readonly layer?: string;
  /** The first seed that finds the bug. The number is also how many runs it takes. */
  readonly seed: number;
  /** Faults of the replay stop after this time, because that suffices. Absent: as long as any run of the seed. */
  readonly runMs?: number;
  /** Only runs with these kinds of faults find the bug. Absent: the usual kinds. */
  readonly faults?: readonly string[];
  /** The first unit test file that failed with the bug. Absent: all pass. */
  readonly caughtBy?: string;
  /** The promises that the bug may break, by the names in the simulation's violations. */
  readonly properties: readonly string[];
}

/** The bugs of one simulation, and the files that define them. */
export interface Planting {
  /** The simulation's folder below test/sim. */
  readonly simulation: string;
  /** The command that finds the seed of the bug named after it: `pnpm planted:raft`. */
  readonly command: string;
  readonly bugs: readonly PlantedBug[];
  /** The possible lengths of short replays, shortest first. Absent: replays are as long as any run. */
  readonly shortRunsMs?: readonly number[];
  /** The files with `bugs`, relative to the root of the repository. */
  readonly files: readonly string[];
}
