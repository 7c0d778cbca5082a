import { serveSeeds } from '../../common/cli/worker.ts';
import { runSeed } from '../run.ts';

serveSeeds(({ seed }) => runSeed(seed));
