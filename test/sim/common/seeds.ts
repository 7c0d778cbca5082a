/** The seeds that a test of a simulation runs. */

export interface Seeds {
  readonly seeds: readonly number[];
  /** Whether a single run is repeated. Sums over all runs mean nothing then. */
  readonly single: boolean;
}

/** `first`, then the seeds from 1 to `count`. `SIM_SEEDS=1000` runs more of them; `SIM_SEED=17` runs only that one. */
export function seedsToRun(count: number, first: readonly number[] = []): Seeds {
  const { SIM_SEED, SIM_SEEDS } = process.env;
  if (SIM_SEED !== undefined) return { seeds: [Number(SIM_SEED)], single: true };
  const drawn = Array.from({ length: Number(SIM_SEEDS ?? count) }, (_, i) => i + 1);
  return { seeds: [...new Set([...first, ...drawn])], single: false };
}
