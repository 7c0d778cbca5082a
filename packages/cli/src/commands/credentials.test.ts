import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { afterAll, describe, expect, test } from 'vitest';
import { CommandError } from '../exit-codes.ts';
import type { Shell } from '../shell.ts';
import { addCredentialFlags, type ClientCredentials, type CredentialFlags } from './credentials.ts';

const dir = mkdtempSync(join(tmpdir(), 'remora-credentials-'));
afterAll(() => rmSync(dir, { recursive: true }));

function file(name: string, content: string, mode = 0o600): string {
  const path = join(dir, name);
  writeFileSync(path, content, { mode });
  return path;
}

const PASSWORD = file('password', 'from-file\n');
const TOKEN = file('token', 'a.token\n');

interface Given {
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** What the person types. */
  readonly typed?: string;
}

interface Read {
  readonly credentials: ClientCredentials;
  readonly asked: readonly string[];
  readonly warned: readonly string[];
}

async function read({ args = [], env = {}, typed }: Given): Promise<Read> {
  const [asked, warned]: [string[], string[]] = [[], []];
  const shell = {
    env,
    err: (text: string) => warned.push(text),
    askSecret: async (question: string) => {
      asked.push(question);
      return typed;
    },
  } as unknown as Shell;
  let credentials: ClientCredentials | undefined;
  const command = addCredentialFlags(new Command('x').exitOverride(), shell).action(async (flags: CredentialFlags) => {
    credentials = await flags.credentials?.();
    await flags.credentials?.();
  });
  await command.parseAsync([...args], { from: 'user' });
  if (credentials === undefined) throw new Error('there are no credentials');
  return { credentials, asked, warned };
}

/** A token is read at each log-in. */
function plain({ token, ...rest }: ClientCredentials): ClientCredentials {
  return token === undefined ? rest : { ...rest, token: typeof token === 'function' ? token() : token };
}

const USER_ENV = { REMORA_USER: 'ann' };

describe('a command logs in', () => {
  const rows: readonly (Given & { readonly name: string; readonly as: ClientCredentials })[] = [
    { name: 'as nobody', as: {} },
    {
      name: 'with a password from a file',
      args: ['--user', 'ann', '--password-file', PASSWORD],
      as: { user: 'ann', password: 'from-file' },
    },
    {
      name: 'with variables',
      env: { ...USER_ENV, REMORA_PASSWORD: 'from-env' },
      as: { user: 'ann', password: 'from-env' },
    },
    {
      name: 'with a file that a variable names',
      env: { ...USER_ENV, REMORA_PASSWORD_FILE: PASSWORD },
      as: { user: 'ann', password: 'from-file' },
    },
    { name: 'with a token from a file', args: ['--token-file', TOKEN], as: { token: 'a.token' } },
    { name: 'with a token from a variable', env: { REMORA_TOKEN: 'a.b' }, as: { token: 'a.b' } },
    { name: 'with a token file of a variable', env: { REMORA_TOKEN_FILE: TOKEN }, as: { token: 'a.token' } },
    {
      name: 'as the user of the flag, whatever token a variable has (CC2)',
      args: ['--user', 'ann', '--password-file', PASSWORD],
      env: { REMORA_TOKEN: 'a.b' },
      as: { user: 'ann', password: 'from-file' },
    },
    {
      name: 'with the token of the flag, whatever user a variable has (CC2)',
      args: ['--token-file', TOKEN],
      env: { ...USER_ENV, REMORA_PASSWORD: 'x' },
      as: { token: 'a.token' },
    },
    {
      name: 'in plain text, if that is allowed',
      args: ['--token-file', TOKEN, '--allow-plain-text'],
      as: { token: 'a.token', allowPlainText: true },
    },
  ];
  test.each(rows)('$name', async ({ as, ...given }) => {
    const { credentials, asked } = await read(given);
    expect(plain(credentials)).toEqual(as);
    expect(asked).toEqual([]);
  });

  test('with a password that a person types, once (CC3)', async () => {
    expect(await read({ args: ['--user', 'ann'], typed: 'typed' })).toMatchObject({
      credentials: { user: 'ann', password: 'typed' },
      asked: ['Password of ann: '],
    });
  });

  test('with a password of its own, if a variable has that of another user (CC2)', async () => {
    const env = { ...USER_ENV, REMORA_PASSWORD: 'of-ann' };
    const { credentials } = await read({ args: ['--user', 'root'], env, typed: 'of-root' });
    expect(credentials).toEqual({ user: 'root', password: 'of-root' });
  });

  test('with a token that another program has renewed', async () => {
    const path = file('renewed', 'first');
    const { credentials } = await read({ args: ['--token-file', path] });
    writeFileSync(path, 'second');
    expect(plain(credentials)).toEqual({ token: 'second' });
  });

  test('with a warning if others may read the file', async () => {
    const path = file('loose', 'x', 0o644);
    const { warned } = await read({ args: ['--user', 'ann', '--password-file', path] });
    expect(warned).toEqual([`warning: ${path} is accessible to other users; run: chmod 600 ${path}`]);
  });
});

describe('a command is refused', () => {
  const rows: readonly (Given & { readonly name: string; readonly says: RegExp })[] = [
    {
      name: 'a password in the variable of the user',
      env: { REMORA_USER: 'ann:pw' },
      says: /^REMORA_USER takes a name/,
    },
    { name: 'a password without a user', env: { REMORA_PASSWORD: 'x' }, says: /^REMORA_PASSWORD: the user is missing/ },
    {
      name: 'a file without a user',
      args: ['--password-file', PASSWORD],
      says: /^--password-file: the user is missing/,
    },
    { name: 'a token and a user', args: ['--token-file', TOKEN, '--user', 'ann'], says: /not both/ },
    { name: 'a token and a user in variables', env: { ...USER_ENV, REMORA_TOKEN: 'a' }, says: /set one of them/ },
    { name: 'two passwords', env: { ...USER_ENV, REMORA_PASSWORD: 'a', REMORA_PASSWORD_FILE: 'b' }, says: /set one/ },
    { name: 'a file that is not there', args: ['--token-file', join(dir, 'none')], says: /it cannot be read: ENOENT/ },
    { name: 'an empty file', args: ['--token-file', file('empty', '\n')], says: /the file is empty/ },
    {
      name: 'a file of several lines',
      args: ['--user', 'ann', '--password-file', file('lines', 'a\nb\n')],
      says: /a password has one/,
    },
    { name: 'a user without a terminal', args: ['--user', 'ann'], says: /cannot be asked for: no terminal/ },
    { name: 'an empty password', args: ['--user', 'ann'], typed: '', says: /the password is empty/ },
  ];
  test.each(rows)('$name', async ({ says, ...given }) => {
    const refusal = await read(given).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(CommandError);
    expect((refusal as CommandError).message).toMatch(says);
  });

  test('whose argument has a password, which is not shown (CC1)', async () => {
    const refusal = await read({ args: ['--user', 'ann:hunter2'], typed: 'x' }).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(CommandError);
    expect((refusal as CommandError).message).toMatch(/^--user takes a name alone/);
    expect((refusal as CommandError).message).not.toContain('hunter2');
  });
});
