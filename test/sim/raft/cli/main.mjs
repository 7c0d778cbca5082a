// `pnpm sim:raft`: builds the simulation, with a planted bug if one is named, and runs it.
import { runMain } from '../../common/cli/load.mjs';

process.exit(await runMain('raft', process.argv.slice(2)));
