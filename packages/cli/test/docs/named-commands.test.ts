import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Command } from 'commander';
import { beforeAll, describe, expect, test } from 'vitest';
import { createProgram } from '../../src/program.ts';
import { faultOf, type NamedCommand, namedIn, partsOf } from './named-commands.ts';
import { allPages, ROOT, readPage } from './pages.ts';

let program: Command;
let help = '';
const scripts = new Set(['start', 'test', ...Object.keys(scriptsOf('package.json'))]);
/** For `npm run … --prefix examples`. */
const exampleScripts = new Set([...scripts, ...Object.keys(scriptsOf('examples/package.json'))]);

beforeAll(async () => {
  const shell = {
    env: {},
    terminal: false,
    shown: false,
    out: (text: string) => {
      help += `${text}\n`;
    },
    err() {},
    raw() {},
    ask: () => Promise.resolve(undefined),
    askSecret: () => Promise.resolve(undefined),
    input: () => Promise.resolve(''),
  };
  program = await createProgram({ shell, loadStartNode: () => Promise.reject(new Error('nothing starts here')) });
});

function scriptsOf(file: string): Readonly<Record<string, string>> {
  return (JSON.parse(readFileSync(join(ROOT, file), 'utf8')) as { scripts: Record<string, string> }).scripts;
}

function faults(named: readonly NamedCommand[]): readonly string[] {
  return named.flatMap((each) => {
    const { file, line, text } = each;
    const fault = faultOf(each, program, text.endsWith(' --prefix examples') ? exampleScripts : scripts);
    return fault === undefined ? [] : [`${file}:${line}: \`${text}\`: ${fault}`];
  });
}

test('every command that the documents name is there, with its flags', () => {
  const named = allPages().flatMap((page) => namedIn(page, readPage(page)));
  expect(named.length).toBeGreaterThan(150);
  expect(faults(named)).toEqual([]);
});

test('every example that the help of a command gives is there, with its flags', () => {
  for (const command of withSubcommands(program)) command.outputHelp();
  const examples = help.split('\n').flatMap((line, i) => {
    const text = line.trim();
    const parts = text.startsWith('$ ') ? partsOf(text.replace(/\\$/, '')) : [];
    return parts.flatMap((part) => (part.includes('remora ') ? [{ file: '--help', line: i + 1, text: part }] : []));
  });
  expect(examples.length).toBeGreaterThan(60);
  expect(faults([...examples, ...namedIn('--help', help)])).toEqual([]);
});

function* withSubcommands(command: Command): Generator<Command> {
  yield command;
  for (const child of command.commands) yield* withSubcommands(child);
}

describe('what is not there is found', () => {
  test.each([
    ['remora kv compact', 'kv has no command compact'],
    ['$ remora kv get a --nonsense', 'get has no flag --nonsense'],
    ['remora admin ranges show 7 8', 'show takes 1 arguments, not 2'],
    ['npx remora nodes', 'remora has no command nodes'],
    ['npm run nonsense -- --minutes 5', 'there is no script nonsense'],
    ['pnpm nonsense', 'there is no script nonsense'],
  ])('%s', (text, fault) => {
    expect(faultOf({ text }, program, scripts)).toBe(fault);
  });

  test.each([
    'REMORA_ENDPOINTS=a:1 remora lock run NAME --ttl 5s -- anything --else',
    'remora admin COMMAND --help',
    'remora node --name n1 --initial-cluster n1=a:1,n2=b:1 --insecure clients,peers',
    'remora admin compact [--revision N]',
    'remora lock release [options] <name>',
    'npm start -- --nodes 5',
    'pnpm x …',
  ])('and nothing else: %s', (text) => {
    expect(faultOf({ text }, program, scripts)).toBeUndefined();
  });

  test('in lines that go on, in inline code, and in the table about `remora admin`', () => {
    const page = [
      '```sh',
      'remora node --name n1 \\',
      '  --nonsense',
      '```',
      'Use `remora lock nonsense`.',
      '## Look: `remora admin`',
      '| Command | What it does |',
      '| --- | --- |',
      '| `nodes drain NODE`, `nonsense` | … |',
      '',
      '| `no command` | … |',
    ].join('\n');
    expect(faults(namedIn('page', page))).toEqual([
      'page:3: `remora node --name n1 --nonsense`: node has no flag --nonsense',
      'page:5: `remora lock nonsense`: lock has no command nonsense',
      'page:9: `remora admin nonsense`: admin has no command nonsense',
    ]);
  });
});
