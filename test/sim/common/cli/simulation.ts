/** What the command line needs of a simulation. */
import type { SimFailure } from '../failure.ts';
import type { FaultEvent } from '../faults/fault.ts';

export interface Job {
  readonly seed: number;
  /** In place of the faults that are drawn from the seed. */
  readonly schedule?: readonly FaultEvent[];
  /** What clients asked and were told is to be given back as text. */
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
  /** How it is called: `pnpm sim:raft`. */
  readonly command: string;
  /** Of every kind at least one has to happen in a long run. */
  readonly faultKinds: readonly string[];
  run(job: Job): Promise<SimResult>;
  /** Of the sums over many seeds: why the run fails although no promise was broken. */
  judge?(figures: Readonly<Record<string, number>>): readonly string[];
  /**
   * The faults of a seed, where they are drawn before the run: some can be left out then. Absent where each follows
   * from what the run has come to.
   */
  draw?(seed: number): readonly FaultEvent[];
}
