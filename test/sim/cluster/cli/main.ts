/** The command line of the simulation of whole clusters. */
import { type Place, runSimulation } from '../../common/cli/runner.ts';
import type { Simulation } from '../../common/cli/simulation.ts';
import { FAULTS } from '../faults/index.ts';
import { optionsOf } from '../options.ts';
import { judge, runSeed } from '../run.ts';
import { drawSchedule } from '../schedule.ts';

const simulation: Simulation = {
  command: 'pnpm sim',
  faultKinds: FAULTS.map(({ kind }) => kind),
  run: ({ seed, ...change }) => runSeed(seed, change),
  judge,
  draw: (seed) => drawSchedule(seed, optionsOf(seed)),
};

export function main(args: readonly string[], place: Place): Promise<number> {
  return runSimulation(simulation, args, place);
}
