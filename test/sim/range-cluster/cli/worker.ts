import { serveSeeds } from '../../common/cli/worker.ts';
import { RANGE_SIMULATION } from '../simulation.ts';

serveSeeds((job) => RANGE_SIMULATION.run(job));
