// `pnpm console:sizes`: builds the product, bundles the simulated cluster, and runs main.ts from its source. The bundle
// runs faster than modules that are looked up one by one, and stands where a release would: beside its console.
import { copyFileSync, cpSync, mkdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { createServer } from 'vite';
import { build as buildProduct } from '../../scripts/build.mjs';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const HERE = fileURLToPath(new URL('.', import.meta.url));
/** Dependencies that stay outside of the bundle, and the packages that have them. */
const OUTSIDE = { level: 'dataserver', pino: 'base', 'prom-client': 'base' };
const BANNER =
  "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);";

const args = process.argv.slice(2).filter((argument) => argument !== '--');
await buildProduct();
const out = join(ROOT, '.remora/console-sizes', String(process.pid));
process.once('exit', () => rmSync(out, { recursive: true, force: true }));
mkdirSync(join(out, 'program'), { recursive: true });
copyFileSync(join(ROOT, 'packages/cli/package.json'), join(out, 'package.json'));
cpSync(join(ROOT, 'packages/console/dist/static'), join(out, 'console'), { recursive: true });
const clusterFile = join(out, 'program/cluster.mjs');
await bundle(clusterFile);
const { main } = await load(join(HERE, 'main.ts'));
process.exit(await main(args, clusterFile));

function bundle(outfile) {
  const outside = {
    name: 'outside',
    setup({ onResolve }) {
      onResolve({ filter: new RegExp(`^(?:${Object.keys(OUTSIDE).join('|')})$`) }, ({ path: id }) => {
        const from = createRequire(join(ROOT, 'packages', OUTSIDE[id], 'package.json'));
        return { path: pathToFileURL(from.resolve(id)).href, external: true };
      });
    },
  };
  return build({
    absWorkingDir: ROOT,
    entryPoints: [join(HERE, 'cluster/main.ts')],
    outfile,
    ...{ bundle: true, format: 'esm', platform: 'node', target: 'node20', sourcemap: 'inline', logLevel: 'error' },
    conditions: ['source'],
    banner: { js: BANNER },
    plugins: [outside],
  });
}

/** The server stays open until this process ends. */
async function load(file) {
  const conditions = ['source'];
  const server = await createServer({
    ...{ configFile: false, logLevel: 'error', optimizeDeps: { noDiscovery: true }, esbuild: { target: 'node20' } },
    server: { middlewareMode: true, hmr: false, watch: null, ws: false },
    resolve: { conditions },
    ssr: { resolve: { conditions, externalConditions: ['node'] } },
  });
  return server.ssrLoadModule(file);
}
