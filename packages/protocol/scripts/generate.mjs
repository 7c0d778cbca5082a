// Turns proto/ into src/gen, which is not kept in version control.
//
// G1. The output depends on the inputs only: the .proto files, buf.gen.yaml, these scripts and the versions of the
//     generators. It is skipped when a stamp in the output says that it was made from exactly these.
// G2. The output appears at once and whole: it is written beside and renamed, so that a run that breaks off, or two
//     at the same time, leave either the old or the new.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { etcdSchema } from './etcd-schema.mjs';
import { lighten } from './lighten.mjs';
import { splitClients } from './split-clients.mjs';

/** What the generated code is made by. */
const SCRIPTS = ['scripts/etcd-schema.mjs', 'scripts/generate.mjs', 'scripts/lighten.mjs', 'scripts/split-clients.mjs'];

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
  buf(['generate', '--output', fresh]);
  lighten(fresh);
  splitClients(fresh);
  const image = JSON.parse(buf(['build', 'proto', '--path', 'proto/etcd', '-o', '-#format=json']));
  writeFileSync(join(fresh, 'etcd/schema.ts'), etcdSchema(image));
  writeFileSync(join(fresh, '.made-from'), digest);
  rmSync(output, { recursive: true, force: true });
  renameSync(fresh, output);
} catch (error) {
  console.error(`generate: ${error.message}`);
  process.exitCode = 1;
} finally {
  rmSync(fresh, { recursive: true, force: true });
}

/** Runs buf, and returns what it writes. */
function buf(args) {
  const { error, status, signal, stdout } = spawnSync(
    process.execPath,
    [join(modules, '@bufbuild/buf/bin/buf'), ...args],
    {
      cwd: packageDir,
      stdio: ['ignore', 'pipe', 'inherit'],
      maxBuffer: 64 * 1024 * 1024,
      encoding: 'utf8',
    },
  );
  if (error) throw error;
  if (status !== 0) throw new Error(`buf ${args[0]} ended with ${status ?? signal}`);
  return stdout;
}

function inputsDigest() {
  const hash = createHash('sha256');
  for (const name of ['@bufbuild/buf', 'ts-proto']) {
    hash.update(`${name}@${JSON.parse(readFileSync(join(modules, name, 'package.json'), 'utf8')).version}\0`);
  }
  for (const path of ['buf.gen.yaml', ...SCRIPTS, ...protoFiles('proto')]) {
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
