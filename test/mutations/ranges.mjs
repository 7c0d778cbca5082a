// `pnpm mutants:ranges [NAME…] [--jobs N]`: for each mutation of range-rules.ts and its imports, applies it to the
// source and runs the test that it names. Fails if such a test passes.
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
