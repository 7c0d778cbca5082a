// `remora-server/testing`: a node for tests, for `import` and for `require`.
//
// TE1. It uses the SDK that the program under test uses: `remora` is a peer dependency, and not in these files. Errors
//      and clients are then of the classes that the test knows. The files for `require` require the SDK's.
// TE2. It shares no file with the programs: what is loaded for tests changes nothing about how a node starts.
// TE3. Its declarations are the compiler's of `packages/cli/src/testing/{index,api}.ts`. Besides each other, these name
//      nothing but the SDK.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { build as bundle } from 'esbuild';
import { root } from '../lib.mjs';
import { TARGET, writeJson } from './package-files.mjs';

const TESTING = 'packages/cli/dist/testing';
const DECLARATIONS = ['index.d.ts', 'api.d.ts'];
/** A test node has no TLS, so it never loads this, which is a third of all code. */
const NEVER_LOADED = '*/certs/revocation-lists.js';
/** What a module calls its own URL, in a file for `require`. */
const OWN_URL = {
  define: { 'import.meta.url': 'ownUrl' },
  banner: { js: `const ownUrl = require('node:url').pathToFileURL(__filename).href;` },
};

/** What the manifest of `remora-server` says of it. */
export function testingManifest(version) {
  const types = (format) => `./types/${format}/index.d.ts`;
  return {
    exports: {
      './testing': {
        import: { types: types('esm'), default: './dist/testing.js' },
        require: { types: types('cjs'), default: './dist/testing.cjs' },
      },
      './package.json': './package.json',
    },
    // For `moduleResolution: node10`, which does not read `exports`.
    typesVersions: { '*': { testing: [types('cjs')] } },
    peerDependencies: { remora: `^${version}` },
    peerDependenciesMeta: { remora: { optional: true } },
  };
}

/** Writes its files into the directory of `remora-server`. Returns esbuild's account of what is in them. */
export async function layOutTesting(directory, { external, esmBanner, define }) {
  const common = {
    ...{ bundle: true, platform: 'node', target: TARGET, minifyWhitespace: true, logLevel: 'error' },
    external: ['remora', NEVER_LOADED, ...external],
    ...{ entryPoints: [{ in: join(root, TESTING, 'index.js'), out: 'testing' }], outdir: join(directory, 'dist') },
    ...{ absWorkingDir: root, metafile: true },
  };
  const { metafile } = await bundle({
    ...{ ...common, define, format: 'esm', splitting: true, chunkNames: 'testing-[hash]' },
    banner: { js: esmBanner },
  });
  const { define: ownUrl, banner } = OWN_URL;
  await bundle({ ...common, format: 'cjs', outExtension: { '.js': '.cjs' }, define: { ...define, ...ownUrl }, banner });
  for (const format of ['esm', 'cjs']) writeTypes(join(directory, 'types', format), format);
  return metafile;
}

/** TE3. */
function writeTypes(directory, format) {
  mkdirSync(directory, { recursive: true });
  for (const name of DECLARATIONS) {
    const text = readFileSync(join(root, TESTING, name), 'utf8')
      .replace(/^\/\/# sourceMappingURL=.*$/m, '')
      .replaceAll(/from '(\.\/\w+)\.ts'/g, `from '$1.js'`);
    const others = [...text.matchAll(/from '([^']+)'/g)].map(([, from]) => from);
    const strange = others.find((from) => from !== 'remora' && !from.startsWith('./'));
    if (strange !== undefined) throw new Error(`${name} needs the types of ${strange}, which are not in the package`);
    writeFileSync(join(directory, name), text);
  }
  writeJson(join(directory, 'package.json'), { type: format === 'esm' ? 'module' : 'commonjs' });
}
