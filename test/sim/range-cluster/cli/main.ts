/** The command line of the simulation of ranges. */
import { type Place, runSimulation } from '../../common/cli/runner.ts';
import { RANGE_SIMULATION } from '../simulation.ts';

export function main(args: readonly string[], place: Place): Promise<number> {
  return runSimulation(RANGE_SIMULATION, args, place);
}
