// `pnpm planted:raft`: searches for the seeds that find planted bugs, see find.ts. The first argument names the
// simulation.
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';
import * as loader from '../cli/load.mjs';

const { module } = await runnerImport(fileURLToPath(new URL('main.ts', import.meta.url)), {
  configFile: false,
  logLevel: 'error',
});
const [simulation, ...args] = process.argv.slice(2);
process.exitCode = await module.main(simulation, args, loader);
