// `node test/checkers/main.mjs FILE…`: checks histories in JSON lines. It runs main.ts from its source.
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';

const { module } = await runnerImport(fileURLToPath(new URL('main.ts', import.meta.url)), {
  configFile: false,
  logLevel: 'error',
  esbuild: { target: 'node20' },
  // The workspace's packages from their sources, so that nothing has to be built first.
  environments: { inline: { resolve: { conditions: ['source'], noExternal: [/^@remora\//] } } },
});
process.exitCode = await module.main(process.argv.slice(2));
