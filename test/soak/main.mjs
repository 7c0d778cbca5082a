// `pnpm soak`, `pnpm overload`, `pnpm growth` and `pnpm nodes`: builds the program under test, then runs main.ts from
// its source. Load processes also start here, after everything is built.
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';
import { build } from '../../scripts/build.mjs';

const args = process.argv.slice(2).filter((argument) => argument !== '--');
if (!args[0]?.startsWith('load:')) await build();
const conditions = ['source'];
const { module } = await runnerImport(fileURLToPath(new URL('main.ts', import.meta.url)), {
  configFile: false,
  logLevel: 'error',
  esbuild: { target: 'node20' },
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ['node'] } },
});
process.exit(await module.main(args));
