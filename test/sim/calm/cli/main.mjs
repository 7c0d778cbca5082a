// `pnpm sim:calm`: builds the simulation of calm and runs it.
import { runMain } from '../../common/cli/load.mjs';

process.exit(await runMain('calm', process.argv.slice(2)));
