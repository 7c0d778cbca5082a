import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { startGated } from './gate.ts';

let directory: string;
let file: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'remora-gate-'));
  file = join(directory, 'seen');
});
afterEach(() => rmSync(directory, { recursive: true }));

/** Prints its environment, by a program that changes nothing in it. */
const WRITES_ENV = [
  process.execPath,
  '-e',
  'require("fs").writeFileSync(process.argv[1], JSON.stringify(process.env))',
];

test('a command sees the environment that it was given, entries included whose names no shell knows', async () => {
  const env = { PATH: process.env.PATH, 'a.b': 'x y', 'c-d': '', 'e%f': "'$(g)\n", PLAIN: '1' };
  const gated = startGated({ argv: [...WRITES_ENV, file], env, ownSession: true });
  gated.open();
  expect(await once(gated.child, 'exit')).toEqual([0, null]);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject(env);
});

test.each([
  ['an option that runs a program', (made: string) => `-Stouch ${made} #`],
  ['an option that removes an entry', () => '-uPATH'],
  ['the end of options', () => '--'],
  ['an option that empties the environment', () => '-i'],
  ['a lone hyphen', () => '-'],
])('an entry of the environment whose name reads as %s is an entry (GA2)', async (_, nameOf) => {
  const made = join(directory, 'made');
  const env = { PATH: process.env.PATH, [nameOf(made)]: '1', 'a.b': '2' };
  const gated = startGated({ argv: [...WRITES_ENV, file], env, ownSession: true });
  gated.open();
  expect(await once(gated.child, 'exit')).toEqual([0, null]);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject(env);
  expect(existsSync(made)).toBe(false);
});

test('no PATH of the command is needed to pass on its environment (GA2)', async () => {
  const env = { PATH: directory, 'a.b': '1' };
  const gated = startGated({ argv: [...WRITES_ENV, file], env, ownSession: true });
  gated.open();
  expect(await once(gated.child, 'exit')).toEqual([0, null]);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject(env);
});

test.each(['a=b', '-a'])('a program of the name %s is run, whatever its environment has (GA2)', async (name) => {
  symlinkSync(process.execPath, join(directory, name));
  for (const odd of [{}, { 'a.b': '1' }]) {
    const env = { PATH: directory, ...odd };
    const gated = startGated({ argv: [name, ...WRITES_ENV.slice(1), file], env, ownSession: true });
    gated.open();
    expect(await once(gated.child, 'exit')).toEqual([0, null]);
    expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject(env);
  }
});

test('arguments reach a command as they are', async () => {
  const program = 'require("fs").writeFileSync(process.argv[1], JSON.stringify(process.argv.slice(2)))';
  const args = ['', 'a b', '$HOME', '*', '--', '-n', "it's", 'a=b', 'line\nline'];
  const env = { PATH: process.env.PATH, 'a.b': '1' };
  const gated = startGated({ argv: [process.execPath, '-e', program, '--', file, ...args], env, ownSession: true });
  gated.open();
  await once(gated.child, 'exit');
  expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual(args);
});

test('a command whose gate is closed never begins (GA1)', async () => {
  const gated = startGated({ argv: [...WRITES_ENV, file], env: { PATH: process.env.PATH }, ownSession: true });
  gated.close();
  expect(await once(gated.child, 'exit')).toEqual([1, null]);
  expect(() => readFileSync(file)).toThrow('ENOENT');
});
