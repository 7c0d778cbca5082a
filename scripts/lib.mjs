// What the other scripts share. Plain Node without dependencies, because it runs before anything is installed.
//
// T1. The package manager is the pinned one: `packageManager` in package.json names it, npx fetches it.
// T2. A step is skipped only if a stamp says that it succeeded on exactly the present inputs; a stamp is written
//     after its step has succeeded, never before.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = dirname(dirname(fileURLToPath(import.meta.url)));

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/**
 * Runs a program in the foreground and resolves to its exit code (128 + n after signal n).
 * While it runs, a termination signal is the child's business and is passed on. A terminal sends Ctrl-C to the whole
 * process group, so the child may see it twice; what is run here must take that as one.
 */
export function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const shell = process.platform === 'win32' && command !== process.execPath;
    const child = spawn(command, args, { cwd: root, stdio: 'inherit', shell, ...options });
    const handlers = SIGNALS.map((signal) => {
      const forward = () => child.kill(signal);
      process.on(signal, forward);
      return () => process.off(signal, forward);
    });
    const release = () => {
      for (const off of handlers) off();
    };
    child.on('error', (error) => {
      release();
      reject(error);
    });
    child.on('exit', (code, signal) => {
      release();
      resolve(code ?? 128 + (signal === 'SIGINT' ? 2 : signal === 'SIGHUP' ? 1 : 15));
    });
  });
}

/** Runs a step that everything after it needs; ends this process with the step's exit code when it fails. */
export async function must(what, command, args, options) {
  const code = await run(command, args, options).catch((error) => {
    console.error(`${what}: cannot run ${command}: ${error.message}`);
    return 1;
  });
  if (code === 0) return;
  console.error(`${what} failed (exit code ${code})`);
  process.exit(code);
}

/** Path of a JavaScript program that an installed package provides. */
export function tool(packageName, path) {
  return join(root, 'node_modules', packageName, path);
}

export function readJson(path) {
  return JSON.parse(readFileSync(join(root, path), 'utf8'));
}

/** Every file under `dir`, depth first in name order, without build output and installed packages. */
export function filesUnder(dir, found = []) {
  const skipped = new Set(['node_modules', 'dist', '.git', 'gen']);
  for (const entry of readdirSync(join(root, dir), { withFileTypes: true }).sort((a, b) =>
    a.name < b.name ? -1 : 1,
  )) {
    const path = join(dir, entry.name);
    if (entry.isDirectory()) {
      if (!skipped.has(entry.name)) filesUnder(path, found);
    } else if (entry.isFile()) found.push(path);
  }
  return found;
}

/** A digest of what `paths` contain. */
export function digestContents(paths) {
  const hash = createHash('sha256').update(process.version);
  for (const path of paths) hash.update(`\0${path}\0`).update(readFileSync(join(root, path)));
  return hash.digest('hex');
}

/** A digest of the sizes and modification times of `paths`: as good for one working tree, and much quicker to take. */
export function digestTimes(paths) {
  const hash = createHash('sha256').update(process.version);
  for (const path of paths) {
    const { size, mtimeMs } = statSync(join(root, path));
    hash.update(`\0${path}\0${size}\0${mtimeMs}`);
  }
  return hash.digest('hex');
}

/** A file that remembers on which inputs a step last succeeded (T2). */
export class Stamp {
  #path;

  constructor(name) {
    this.#path = join(root, 'node_modules', `.remora-${name}`);
  }

  matches(digest) {
    return existsSync(this.#path) && readFileSync(this.#path, 'utf8') === digest;
  }

  write(digest) {
    mkdirSync(dirname(this.#path), { recursive: true });
    writeFileSync(this.#path, digest);
  }
}
