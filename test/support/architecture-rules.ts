// A1. Imports between packages have one direction.
// A2. Only adapters use time, randomness, files, the network and the environment: files in a folder `node`, the
//     command line package, and the console, which runs in browsers.
// A3. The Raft core is synchronous and pure, and imports only itself and the base package.
// A4. No enums, and no default exports but that of an entry whose programs expect one.
// A5. Files in a folder `testing` are for tests and simulations: no other source imports them.
import { dirname, join } from 'node:path';
import { scanSource } from './source-scan.ts';

/** What each package may import, by folder (A1). The command line may import everything. */
export const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  base: [],
  raft: ['base'],
  // Internal messages contain lock commands in the lock layer's types.
  protocol: ['base', 'lock'],
  lock: ['base'],
  auth: ['base', 'protocol', 'lock'],
  dataserver: ['base', 'raft', 'protocol', 'lock', 'auth'],
  master: ['base', 'raft', 'protocol', 'auth'],
  'grpc-server': [],
  gateway: ['base', 'protocol', 'lock', 'auth', 'grpc-server'],
  client: ['base', 'protocol', 'lock'],
  console: ['gateway'],
  cli: [
    'base',
    'raft',
    'protocol',
    'lock',
    'auth',
    'dataserver',
    'master',
    'gateway',
    'grpc-server',
    'client',
    'console',
  ],
};

const IMPURE_MODULES = new Set([
  ...['fs', 'fs/promises', 'net', 'tls', 'http', 'http2', 'https', 'dgram', 'dns', 'child_process', 'cluster'],
  ...['worker_threads', 'timers', 'timers/promises', 'os', 'process', 'perf_hooks', 'readline', 'vm', 'inspector'],
]);
const ADAPTED_PACKAGES = new Set(['level', 'classic-level', '@grpc/grpc-js', 'pino', 'prom-client']);

/**
 * Globals that give access to time, randomness, the network or the environment (A2). A method of the same name is not
 * one.
 */
const IMPURE_USES: readonly { readonly what: string; readonly pattern: RegExp }[] = [
  { what: 'Date', pattern: /(?<![.\w$#])Date\s*[.(]/ },
  { what: 'Math.random', pattern: /\bMath\s*\.\s*random\b/ },
  { what: 'performance.now', pattern: /(?<![.\w$#])performance\s*\.\s*now\b/ },
  { what: 'process.env', pattern: /\bprocess\s*\.\s*env\b/ },
  { what: 'process.hrtime', pattern: /\bprocess\s*\.\s*hrtime\b/ },
  { what: 'fetch', pattern: callOf('fetch') },
  { what: 'setTimeout', pattern: callOf('setTimeout') },
  { what: 'setInterval', pattern: callOf('setInterval') },
  { what: 'setImmediate', pattern: callOf('setImmediate') },
  { what: 'random bytes of node:crypto', pattern: /\b(randomBytes|randomUUID|randomInt|randomFillSync)\b/ },
];

const CORE = 'packages/raft/src/core/';

/** What the Raft core additionally must not contain (A3). */
const ASYNCHRONOUS: readonly { readonly what: string; readonly pattern: RegExp }[] = [
  { what: 'async', pattern: /(?<![.\w$#])async\s+(function\b|\w+\s*\(|\(|\w+\s*=>)/ },
  { what: 'await', pattern: /(?<![.\w$#])await\b/ },
  { what: 'Promise', pattern: /(?<![.\w$#])Promise\b/ },
  { what: 'queueMicrotask', pattern: callOf('queueMicrotask') },
];

/** All violations of the rules in one source file. `path` is like `packages/raft/src/core/raft.ts`. */
export function violations(path: string, source: string): readonly string[] {
  const [, folder = ''] = /^packages\/([^/]+)\/src\//.exec(path) ?? [];
  const { code, imports } = scanSource(source);
  const isTest = /\.test\.ts$/.test(path);
  const isAdapter = folder === 'cli' || folder === 'console' || path.includes('/node/');
  const isCore = path.startsWith(CORE);
  const found = [...imports.flatMap((name) => wrongEdge(folder, path, name)), ...shape(path, code)];
  if (!isTest && !path.includes('/src/testing/')) {
    found.push(...imports.filter((name) => /\/testing(\/|$)/.test(name)).map((name) => `A5: imports ${name}`));
  }
  if (!isAdapter && !isTest) {
    found.push(...imports.filter(isImpureModule).map((name) => `A2: imports ${name} outside an adapter`));
    found.push(...matching(code, IMPURE_USES).map((what) => `A2: uses ${what} outside an adapter`));
  }
  if (isCore && !isTest) {
    found.push(...imports.filter((name) => !isCoreOrBase(path, name)).map((name) => `A3: the core imports ${name}`));
    found.push(...matching(code, ASYNCHRONOUS).map((what) => `A3: the core uses ${what}`));
  }
  return found;
}

function wrongEdge(folder: string, path: string, name: string): readonly string[] {
  const target = name === 'remora' || name.startsWith('remora/') ? 'client' : /^@remora\/([^/]+)/.exec(name)?.[1];
  if (target !== undefined) {
    return ALLOWED[folder]?.includes(target) ? [] : [`A1: ${folder} may not import ${name}`];
  }
  if (!name.startsWith('.')) return [];
  // A relative path must not leave its package's sources. Tests may import their neighbours in the package.
  const depth = path.split('/').length - 4 + (path.endsWith('.test.ts') ? 1 : 0);
  const ups = name.split('/').filter((part) => part === '..').length;
  return ups > depth && !name.endsWith('.json') ? [`A1: ${name} leaves the package`] : [];
}

/** Programs that move from the library `redlock` import its class as the default (A4). */
const WITH_DEFAULT = 'packages/client/src/redlock.ts';

function shape(path: string, code: string): readonly string[] {
  const found: string[] = [];
  const hasDefault = /(?<![.\w$#])export\s+default\b/.test(code) || /\bas\s+default\b/.test(code);
  if (hasDefault && path !== WITH_DEFAULT) found.push('A4: default export');
  if (/(?<![.\w$#])enum\s+[A-Z]\w*\s*\{/.test(code)) found.push('A4: enum');
  return found;
}

function isImpureModule(name: string): boolean {
  const builtin = name.startsWith('node:') ? name.slice('node:'.length) : name;
  return IMPURE_MODULES.has(builtin) || ADAPTED_PACKAGES.has(name);
}

function isCoreOrBase(path: string, name: string): boolean {
  return name === '@remora/base' || (name.startsWith('.') && join(dirname(path), name).startsWith(CORE));
}

function matching(code: string, rules: typeof IMPURE_USES): readonly string[] {
  return rules.filter(({ pattern }) => pattern.test(code)).map(({ what }) => what);
}

/**
 * Matches a call of a global function, but not of a method, and not the declaration of one (`name(...) {` or
 * `name(...): type`).
 */
function callOf(name: string): RegExp {
  return new RegExp(`(?<![.\\w$#])(?<!function\\s)${name}\\s*\\((?![^()]*(\\([^()]*\\)[^()]*)*\\)\\s*[{:])`);
}
