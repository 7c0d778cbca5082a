import { serveSeeds } from '../../common/cli/worker.ts';
import { runSeed } from '../run.ts';

serveSeeds(({ seed, ...change }) => runSeed(seed, change));
