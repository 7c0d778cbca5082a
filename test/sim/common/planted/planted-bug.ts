/** A bug that a simulation must find. */
import type { Mutation } from '../../../mutations/mutation.ts';

export interface PlantedBug extends Mutation {
  /** The part of the system that it is in; for tables over several. */
  readonly layer?: string;
  /** The first seed that finds it: so many runs it takes. */
  readonly seed: number;
  /** The replay has faults for this long only, as that is enough; absent: for as long as any run of the seed. */
  readonly runMs?: number;
  /** Runs with these kinds of faults and no others find it; absent: with those that any run draws. */
  readonly faults?: readonly string[];
  /** A unit test file that fails with it, the first that was seen to; absent: all pass. */
  readonly caughtBy?: string;
  /** The promises that it may break, by the names that the simulation's violations have. */
  readonly properties: readonly string[];
}

/** The bugs of one simulation, and where they are written down. */
export interface Planting {
  /** The simulation's folder below test/sim. */
  readonly simulation: string;
  /** Looks for the seed of the bug that is named behind it: `pnpm planted:raft`. */
  readonly command: string;
  readonly bugs: readonly PlantedBug[];
  /** How short replays may be, shortest first; absent: they are as long as any run. */
  readonly shortRunsMs?: readonly number[];
  /** The files of `bugs`, from the root of the repository. */
  readonly files: readonly string[];
}
