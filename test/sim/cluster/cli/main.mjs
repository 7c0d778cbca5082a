// `pnpm sim`: builds the simulation of whole clusters and runs it.
import { runMain } from '../../common/cli/load.mjs';

process.exit(await runMain('cluster', process.argv.slice(2)));
