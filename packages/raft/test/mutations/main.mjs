// `pnpm mutants:raft [NAME…] [--jobs N]`: runs the test that each mutation of the table names, with the mutation in
// the source, and fails when one of them passes.
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';

const { module } = await runnerImport(fileURLToPath(new URL('run-mutants.ts', import.meta.url)), {
  configFile: false,
  logLevel: 'error',
  esbuild: { target: 'node20' },
});
process.exitCode = await module.main(process.argv.slice(2));
