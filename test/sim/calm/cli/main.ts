/** The command line of the simulation of calm. */
import { type Place, runSimulation } from '../../common/cli/runner.ts';
import type { Simulation } from '../../common/cli/simulation.ts';
import { DISTURBANCES, RUN_MS, runSeed } from '../run.ts';

const simulation: Simulation = {
  command: 'pnpm sim:calm',
  faultKinds: DISTURBANCES,
  run: ({ seed }) => runSeed(seed),
};

/** `--hours 8` stands for as many seeds as make eight simulated hours. */
export function main(args: readonly string[], place: Place): Promise<number> {
  const at = args.indexOf('--hours');
  if (at < 0) return runSimulation(simulation, args, place);
  const seeds = Math.ceil((Number(args[at + 1]) * 3_600_000) / RUN_MS);
  return runSimulation(simulation, args.toSpliced(at, 2, '--seeds', String(seeds)), place);
}
