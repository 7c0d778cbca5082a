// `pnpm mutants:http [NAME…] [--jobs N]`: for each mutation of http-rules.ts, applies it to the source and runs the
// test that it names. Fails if such a test passes.
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
const [{ runMutants }, { HTTP_RULES }] = [await load('run-mutants.ts'), await load('http-rules.ts')];
const mutants = { command: 'pnpm mutants:http', place: 'test/mutations/http-rules.ts', mutations: HTTP_RULES };
process.exitCode = await runMutants(mutants, process.argv.slice(2));
