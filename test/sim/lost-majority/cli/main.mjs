// `pnpm sim:lost`: builds the simulation of lost majorities and runs it.
import { runMain } from '../../common/cli/load.mjs';

process.exit(await runMain('lost-majority', process.argv.slice(2)));
