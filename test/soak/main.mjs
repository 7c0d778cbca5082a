// `pnpm soak`, `pnpm overload`, `pnpm growth`, `pnpm nodes`, `pnpm attack`: builds the program under test, then runs
// main.ts from its source. Load processes also start here, after everything is built.
import { fileURLToPath } from 'node:url';
import { createServer } from 'vite';
import { build } from '../../scripts/build.mjs';

const args = process.argv.slice(2).filter((argument) => argument !== '--');
if (!args[0]?.startsWith('load:')) await build();
const conditions = ['source'];
// It stays open until this process ends, because commands import their parts when they need them.
const server = await createServer({
  configFile: false,
  logLevel: 'error',
  server: { middlewareMode: true, hmr: false, watch: null, ws: false },
  optimizeDeps: { noDiscovery: true },
  esbuild: { target: 'node20' },
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ['node'] } },
});
const module = await server.ssrLoadModule(fileURLToPath(new URL('main.ts', import.meta.url)));
process.exit(await module.main(args));
