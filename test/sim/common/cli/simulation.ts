/** The simulation, as the command line uses it. */
import type { SimFailure } from '../failure.ts';
import type { FaultEvent } from '../faults/fault.ts';

export interface Job {
  readonly seed: number;
  /** Replaces the faults that are drawn from the seed. */
  readonly schedule?: readonly FaultEvent[];
  /** Return the requests and answers of clients as text. */
  readonly histories?: boolean;
}

/** JSON lines, as test/checkers reads them. */
export interface SimHistory {
  readonly name: string;
  readonly text: string;
}

export interface SimResult {
  readonly seed: number;
  readonly schedule: readonly FaultEvent[];
  /** Equal for equal runs. */
  readonly hash: string;
  /** Operations of clients by outcome. */
  readonly counts: Readonly<Record<string, number>>;
  /** How often each kind of fault happened. */
  readonly fired: ReadonlyMap<string, number>;
  readonly simulatedMs: number;
  readonly steps: number;
  /** Further numbers that are worth adding up. */
  readonly figures: Readonly<Record<string, number>>;
  readonly histories?: readonly SimHistory[];
  readonly failure?: SimFailure;
}

export interface Simulation {
  /** Its command: `pnpm sim:raft`. */
  readonly command: string;
  /** Each kind must happen at least once in a long run. */
  readonly faultKinds: readonly string[];
  run(job: Job): Promise<SimResult>;
  /** Judges the sums over many seeds: returns why the run fails although no promise was broken. */
  judge?(figures: Readonly<Record<string, number>>): readonly string[];
  /**
   * The faults of a seed, if they are drawn before the run: then some can be left out. Absent if each fault depends on
   * the state of the run.
   */
  draw?(seed: number): readonly FaultEvent[];
}
