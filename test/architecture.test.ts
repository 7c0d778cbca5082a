import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { ALLOWED, violations } from './support/architecture-rules.ts';
import { scanSource } from './support/source-scan.ts';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const packages = readdirSync(join(root, 'packages')).sort();

function sources(folder: string): readonly string[] {
  const dir = join('packages', folder, 'src');
  return readdirSync(join(root, dir), { recursive: true, encoding: 'utf8' })
    .filter((path) => /(?<!\.d)\.tsx?$/.test(path) && !path.split('/').includes('gen'))
    .map((path) => join(dir, path))
    .sort();
}

describe('the packages', () => {
  test('each has its place in the order of imports', () => {
    expect(packages.filter((folder) => ALLOWED[folder] === undefined)).toEqual([]);
  });

  test.each(packages)('%s keeps the rules of the architecture', (folder) => {
    const files = sources(folder);
    expect(files.length).toBeGreaterThan(0);
    const found = files.flatMap((path) =>
      violations(path, readFileSync(join(root, path), 'utf8')).map((what) => `${path}: ${what}`),
    );
    expect(found).toEqual([]);
  });
});

describe('what only tests use', () => {
  test.each(packages)('%s publishes what its entries lead to, and nothing else', (folder) => {
    const reached = reachable(entries(folder));
    const others = sources(folder).filter((path) => !reached.has(path));
    expect([...reached].filter(isForTests)).toEqual([]);
    expect(others.filter((path) => !isForTests(path))).toEqual([]);
  });
});

/** By its name; the packages' tsconfig.json exclude these. */
function isForTests(path: string): boolean {
  return path.endsWith('.test.ts');
}

/** What other packages, and the shell, see of a package. */
function entries(folder: string): readonly string[] {
  const dir = join('packages', folder);
  const { exports, bin } = JSON.parse(readFileSync(join(root, dir, 'package.json'), 'utf8'));
  const patterns = Object.values<{ readonly source?: string }>(exports).flatMap(({ source }) =>
    source === undefined ? [] : [join(dir, source)],
  );
  const seen = patterns.flatMap((pattern) => (pattern.includes('*') ? matching(folder, pattern) : [pattern]));
  const isProgram = bin !== undefined || folder === 'console';
  return isProgram ? [...seen, ...sources(folder).filter((path) => /\/src\/main\.tsx?$/.test(path))] : seen;
}

/** `*` stands for the name of a file. */
function matching(folder: string, pattern: string): readonly string[] {
  const [before = '', after = ''] = pattern.split('*');
  return sources(folder).filter((path) => path.startsWith(before) && path.endsWith(after));
}

/** All modules that these import, directly or not. */
function reachable(paths: readonly string[]): ReadonlySet<string> {
  const found = new Set(paths);
  for (const path of found) {
    const { imports } = scanSource(readFileSync(join(root, path), 'utf8'));
    const own = imports.filter((name) => name.startsWith('.') && /\.tsx?$/.test(name));
    for (const name of own) found.add(join(dirname(path), name));
  }
  return found;
}

describe('the checker', () => {
  const rows: readonly { path: string; source: string; expect: readonly string[] }[] = [
    {
      path: 'base/src/a.ts',
      source: `import { x } from '@remora/raft';`,
      expect: ['A1: base may not import @remora/raft'],
    },
    {
      path: 'raft/src/a.ts',
      source: `export * from '@remora/protocol';`,
      expect: ['A1: raft may not import @remora/protocol'],
    },
    {
      path: 'gateway/src/a.ts',
      source: `import type { A } from "@remora/dataserver";`,
      expect: ['A1: gateway may not import @remora/dataserver'],
    },
    {
      path: 'gateway/src/a.ts',
      source: `const m = await import('remora');`,
      expect: ['A1: gateway may not import remora'],
    },
    {
      path: 'raft/src/a.ts',
      source: `import { x } from '../../base/src/a.ts';`,
      expect: ['A1: ../../base/src/a.ts leaves the package'],
    },
    { path: 'raft/src/multi/a.ts', source: `import { x } from '../core/a.ts';`, expect: [] },
    { path: 'dataserver/src/a.ts', source: `import {\n  x,\n} from '@remora/raft';`, expect: [] },
    { path: 'cli/src/a.ts', source: `import { x } from '@remora/master';\nsetTimeout(f, process.env.X);`, expect: [] },
    { path: 'lock/src/a.ts', source: `import fs from 'node:fs';`, expect: ['A2: imports node:fs outside an adapter'] },
    {
      path: 'lock/src/a.ts',
      source: `import { open } from 'fs/promises';`,
      expect: ['A2: imports fs/promises outside an adapter'],
    },
    {
      path: 'lock/src/a.ts',
      source: `import '@grpc/grpc-js';`,
      expect: ['A2: imports @grpc/grpc-js outside an adapter'],
    },
    {
      path: 'dataserver/src/engine/a.ts',
      source: `import { Level } from 'level';`,
      expect: ['A2: imports level outside an adapter'],
    },
    { path: 'dataserver/src/node/a.ts', source: `import { Level } from 'level';`, expect: [] },
    { path: 'lock/src/a.ts', source: `const now = Date.now();`, expect: ['A2: uses Date outside an adapter'] },
    { path: 'lock/src/a.ts', source: `const now = new Date();`, expect: ['A2: uses Date outside an adapter'] },
    {
      path: 'lock/src/a.ts',
      source: `if (Math.random() < 1) f();`,
      expect: ['A2: uses Math.random outside an adapter'],
    },
    { path: 'lock/src/a.ts', source: `setTimeout(() => f(1), 5);`, expect: ['A2: uses setTimeout outside an adapter'] },
    { path: 'lock/src/a.ts', source: `clock.setImmediate(f);`, expect: [] },
    { path: 'lock/src/a.ts', source: `interface C {\n  setImmediate(fn: () => void): void;\n}`, expect: [] },
    { path: 'lock/src/a.ts', source: `const c = { setTimeout(fn) { f(fn); } };`, expect: [] },
    {
      path: 'lock/src/a.ts',
      source: `const level = process.env.LEVEL;`,
      expect: ['A2: uses process.env outside an adapter'],
    },
    {
      path: 'lock/src/a.ts',
      source: `const t = \`$${'{'}Date.now()}\`;`,
      expect: ['A2: uses Date outside an adapter'],
    },
    { path: 'lock/src/a.ts', source: `// Date.now() is forbidden\nf('Math.random');\n/* setTimeout(f) */`, expect: [] },
    {
      path: 'lock/src/a.ts',
      source: `const r = /['"]/; const now = Date.now(); g('x');`,
      expect: ['A2: uses Date outside an adapter'],
    },
    { path: 'lock/src/a.test.ts', source: `const now = Date.now();`, expect: [] },
    {
      path: 'lock/src/a.ts',
      source: `import { ManualClock } from '@remora/base/testing';`,
      expect: ['A5: imports @remora/base/testing'],
    },
    { path: 'raft/src/a.ts', source: `import { x } from './testing/x.ts';`, expect: ['A5: imports ./testing/x.ts'] },
    { path: 'raft/src/testing/a.ts', source: `import { ManualClock } from '@remora/base/testing';`, expect: [] },
    { path: 'lock/src/a.test.ts', source: `import { ManualClock } from '@remora/base/testing';`, expect: [] },
    {
      path: 'raft/src/core/a.ts',
      source: `import { x } from '@remora/base';\nimport { y } from './b.ts';`,
      expect: [],
    },
    {
      path: 'raft/src/core/a.ts',
      source: `import { x } from '../multi/b.ts';`,
      expect: ['A3: the core imports ../multi/b.ts'],
    },
    {
      path: 'raft/src/core/a.ts',
      source: `import { x } from 'node:util';`,
      expect: ['A3: the core imports node:util'],
    },
    { path: 'raft/src/core/a.ts', source: `async function f() {}`, expect: ['A3: the core uses async'] },
    {
      path: 'raft/src/core/a.ts',
      source: `export const f = (): Promise<void> => g();`,
      expect: ['A3: the core uses Promise'],
    },
    { path: 'raft/src/core/a.ts', source: `queueMicrotask(f);`, expect: ['A3: the core uses queueMicrotask'] },
    { path: 'lock/src/a.ts', source: `export default function f() {}`, expect: ['A4: default export'] },
    { path: 'lock/src/a.ts', source: `export { f as default };`, expect: ['A4: default export'] },
    { path: 'lock/src/a.ts', source: `export const enum Color { Red }`, expect: ['A4: enum'] },
  ];
  test.each(rows)('$path: $source', ({ path, source, expect: expected }) => {
    expect(violations(`packages/${path}`, source)).toEqual(expected);
  });

  test('code is told from comments, strings, templates and regular expressions', () => {
    const { code } = scanSource("a(/* b */ 'c', /g[/'\"]h/, `i \\` j`); // k\nl / m / n");
    expect(code.replace(/\s+/g, '')).toBe("a('',,``);l/m/n");
  });

  test('the code inside a template is code', () => {
    const open = '$' + '{';
    const { code } = scanSource(`\`a ${open}b({ c: \`d ${open}e}\` })} f\` g`);
    expect(code.replace(/\s+/g, '')).toBe(`\`${open}b({c:\`${open}e}\`})}\`g`);
  });
});
