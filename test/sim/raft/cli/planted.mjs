// `pnpm planted:raft [NAME…] [options]`: see find-planted.ts.
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';
import * as loader from './load.mjs';

const { module } = await runnerImport(fileURLToPath(new URL('find-planted.ts', import.meta.url)), {
  configFile: false,
  logLevel: 'error',
});
process.exitCode = await module.main(process.argv.slice(2), loader);
