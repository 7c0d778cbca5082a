/** The command line of the simulation of lost majorities. */
import { type Place, runSimulation } from '../../common/cli/runner.ts';
import type { Simulation } from '../../common/cli/simulation.ts';
import { EVENTS } from '../loss.ts';
import { runSeed } from '../run.ts';

const simulation: Simulation = {
  command: 'pnpm sim:lost',
  faultKinds: EVENTS,
  run: ({ seed }) => runSeed(seed),
  judge: (figures) =>
    Object.entries(figures).flatMap(([name, sum]) => (sum > 0 ? [] : [`the runs met none of these: ${name}`])),
};

export function main(args: readonly string[], place: Place): Promise<number> {
  return runSimulation(simulation, args, place);
}
