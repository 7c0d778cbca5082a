import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { Shell } from '../../shell.ts';
import { type NewPasswordFlags, newPassword } from './new-password.ts';

const dir = mkdtempSync(join(tmpdir(), 'remora-new-password-'));
afterAll(() => rmSync(dir, { recursive: true }));
const FILE = join(dir, 'password');
writeFileSync(FILE, 'from-file\n', { mode: 0o600 });

interface Given {
  readonly flags?: NewPasswordFlags;
  readonly env?: Readonly<Record<string, string>>;
  readonly input?: string;
  readonly typed?: readonly string[];
}

function ask({ flags = {}, env = {}, input = '', typed = [] }: Given): Promise<string> {
  const left = [...typed];
  const shell = { env, err: () => {}, input: async () => input, askSecret: async () => left.shift() };
  return newPassword('ann', flags, shell as unknown as Shell);
}

test.each<Given & { readonly name: string; readonly is: string }>([
  { name: 'a file', flags: { newPasswordFile: FILE }, is: 'from-file' },
  { name: 'the standard input', flags: { newPasswordStdin: true }, input: 'piped\n', is: 'piped' },
  { name: 'a variable', env: { REMORA_NEW_PASSWORD: 'from-env' }, is: 'from-env' },
  { name: 'a person, who types it twice', typed: ['typed', 'typed'], is: 'typed' },
])('a new password comes from $name', async ({ is, ...given }) => {
  expect(await ask(given)).toBe(is);
});

test.each<Given & { readonly name: string; readonly says: RegExp }>([
  { name: 'two ways', flags: { newPasswordFile: FILE, newPasswordStdin: true }, says: /not both/ },
  { name: 'an empty input', flags: { newPasswordStdin: true }, input: '\n', says: /the standard input is empty/ },
  { name: 'two that differ', typed: ['a', 'b'], says: /the two passwords differ; nothing was changed/ },
  { name: 'an empty one', typed: ['', ''], says: /the new password is empty/ },
  { name: 'none, without a terminal', says: /cannot be asked for: no terminal/ },
])('refused: $name', async ({ says, ...given }) => {
  await expect(ask(given)).rejects.toThrow(says);
});
