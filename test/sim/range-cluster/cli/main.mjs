// `pnpm sim:ranges`: builds the simulation of ranges and runs it.
import { runMain } from '../../common/cli/load.mjs';

process.exit(await runMain('range-cluster', process.argv.slice(2)));
