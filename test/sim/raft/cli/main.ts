/** The command line of the Raft simulation. */
import { type Place, runSimulation } from '../../common/cli/runner.ts';
import type { Simulation } from '../../common/cli/simulation.ts';
import { optionsOf } from '../options.ts';
import { runSeed } from '../run.ts';
import { drawSchedule, FAULTS } from '../schedule.ts';

const simulation: Simulation = {
  command: 'pnpm sim:raft',
  faultKinds: FAULTS.map(({ kind }) => kind),
  run: ({ seed, ...change }) => runSeed(seed, change),
  draw: (seed) => drawSchedule(seed, optionsOf(seed)),
};

export function main(args: readonly string[], place: Place): Promise<number> {
  return runSimulation(simulation, args, place);
}
