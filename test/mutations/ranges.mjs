// `pnpm mutants:ranges [NAME…] [--jobs N]`: runs the test that each mutation of range-rules.ts, and of what that takes
// in, names, with the mutation in the source, and fails when one of them passes.
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';

const load = async (file) => {
  const path = fileURLToPath(new URL(file, import.meta.url));
  const { module } = await runnerImport(path, {
    configFile: false,
    logLevel: 'error',
    esbuild: { target: 'node20' },
  });
  return module;
};
const [{ runMutants }, { RANGE_RULES }] = [await load('run-mutants.ts'), await load('range-rules.ts')];
const mutants = {
  command: 'pnpm mutants:ranges',
  place: 'test/mutations/range-rules.ts and lock-rules.ts',
  mutations: RANGE_RULES,
};
process.exitCode = await runMutants(mutants, process.argv.slice(2));
