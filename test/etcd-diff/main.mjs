// `npm run fuzz:etcd`: builds the program under test, then runs main.ts from its source.
import { fileURLToPath } from 'node:url';
import { runnerImport } from 'vite';
import { build } from '../../scripts/build.mjs';

// Servers under test end with this process, if it is let end.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => process.exit(1));
await build();
const conditions = ['source'];
const { module } = await runnerImport(fileURLToPath(new URL('main.ts', import.meta.url)), {
  configFile: false,
  logLevel: 'error',
  esbuild: { target: 'node20' },
  resolve: { conditions },
  ssr: { resolve: { conditions, externalConditions: ['node'] } },
});
process.exit(await module.main(process.argv.slice(2).filter((argument) => argument !== '--')));
