// Turns proto/ into src/gen, which is not kept in version control.
//
// G1. The output depends on the inputs only: the .proto files, buf.gen.yaml, this script and the generators' versions.
//     It is skipped when a stamp in the output says that it was made from exactly these.
// G2. The output appears at once and whole: it is written beside and renamed, so that a run that breaks off, or two
//     at the same time, leave either the old or the new.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { lighten } from './lighten.mjs';

const packageDir = dirname(dirname(fileURLToPath(import.meta.url)));
const modules = join(packageDir, '../../node_modules');
const output = join(packageDir, 'src/gen');
const stamp = join(output, '.made-from');

const digest = inputsDigest();
if (existsSync(stamp) && readFileSync(stamp, 'utf8') === digest) process.exit(0);

const fresh = `${output}.${process.pid}`;
rmSync(fresh, { recursive: true, force: true });
mkdirSync(fresh, { recursive: true });
try {
  const buf = spawnSync(process.execPath, [join(modules, '@bufbuild/buf/bin/buf'), 'generate', '--output', fresh], {
    cwd: packageDir,
    stdio: 'inherit',
  });
  if (buf.error) throw buf.error;
  if (buf.status !== 0) throw new Error(`buf generate ended with ${buf.status ?? buf.signal}`);
  lighten(fresh);
  writeFileSync(join(fresh, '.made-from'), digest);
  rmSync(output, { recursive: true, force: true });
  renameSync(fresh, output);
} catch (error) {
  console.error(`generate: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(fresh, { recursive: true, force: true });
}

function inputsDigest() {
  const hash = createHash('sha256');
  for (const name of ['@bufbuild/buf', 'ts-proto']) {
    hash.update(`${name}@${JSON.parse(readFileSync(join(modules, name, 'package.json'), 'utf8')).version}\0`);
  }
  for (const path of ['buf.gen.yaml', 'scripts/generate.mjs', 'scripts/lighten.mjs', ...protoFiles('proto')]) {
    hash
      .update(`${path}\0`)
      .update(readFileSync(join(packageDir, path)))
      .update('\0');
  }
  return hash.digest('hex');
}

/** Every .proto file under `dir`, in name order. */
function protoFiles(dir) {
  return readdirSync(join(packageDir, dir), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const path = `${dir}/${entry.name}`;
      if (entry.isDirectory()) return protoFiles(path);
      return entry.name.endsWith('.proto') ? [path] : [];
    });
}
