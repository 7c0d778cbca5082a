import { FIRST_AUTH, hashPassword, isPassword } from '@remora/auth';
import { describe, expect, test } from 'vitest';
import { foundingPlan } from './founding.ts';

type Given = Parameters<typeof foundingPlan>[0];

const SALT = Buffer.alloc(16, 1);
const NODE = { nodeId: 1, name: 'n1', peerAddress: 'h:1', incarnation: 'i', removed: false };

function plan(options: Partial<Given['options']>, more: Partial<Given> & { readonly text?: string } = {}) {
  return foundingPlan({
    options: { ...listening('127.0.0.1'), insecure: [], initialRootPasswordFile: undefined, ...options },
    records: { knownNodes: [], knownAuth: undefined },
    platform: {
      async readSecret() {
        if (more.text === undefined) throw new Error('ENOENT: no such file');
        return more.text;
      },
    },
    hasher: { hash: async (password) => hashPassword(password, SALT) },
    random: { bytes: (count) => Buffer.alloc(count, 7) },
    ...more,
  });
}

const FILE = { initialRootPasswordFile: 'pw' };

describe('a cluster is founded', () => {
  test('with authentication beyond loopback, and without on loopback (FN1)', async () => {
    expect((await plan({})).kind).toBe('open');
    expect((await plan({ ...listening('10.0.0.1'), insecure: ['clients', 'anonymous'] })).kind).toBe('open');
    expect(await plan(listening('10.0.0.1'))).toEqual({
      kind: 'certificate',
      root: { passwordHash: '', tokenKey: Buffer.alloc(32, 7) },
    });
  });

  test('with the hash of the password in the file, without its newline (FN2)', async () => {
    const founded = await plan(FILE, { text: 'sesame\n' });
    if (founded.kind === 'open' || founded.root === undefined) throw new Error('it has a root');
    expect(founded.kind).toBe('password');
    expect(isPassword('sesame', founded.root.passwordHash)).toBe(true);
    expect(JSON.stringify(founded)).not.toContain('sesame');
  });

  const unusable = [
    { name: 'is not there', text: undefined, says: 'cannot read --initial-root-password-file pw: ENOENT' },
    { name: 'is empty', text: '\n', says: 'a password must not be empty' },
    { name: 'has a NUL', text: 'a\0b', says: 'must not contain a NUL' },
    { name: 'has 10 kB', text: 'x'.repeat(10_240), says: 'at most 1024 bytes; this one has 10240' },
    { name: 'has several lines', text: 'a\nb\n', says: 'has several lines' },
  ];
  test.each(unusable)('not with a file that $name (FN3)', async ({ text, says }) => {
    await expect(plan(FILE, text === undefined ? {} : { text })).rejects.toMatchObject({
      exit: 'usage',
      message: expect.stringContaining(says),
    });
  });

  test('once: later the file is not needed, nor read when users are known (FN3)', async () => {
    const records = { knownNodes: [NODE], knownAuth: undefined };
    expect(await plan(FILE, { records })).toEqual({ kind: 'password', root: undefined });
    const knownAuth = { ...FIRST_AUTH, revision: 2 };
    const platform = { readSecret: () => Promise.reject(new Error('read')) };
    expect(await plan(FILE, { records: { knownNodes: [], knownAuth }, platform })).toEqual({
      kind: 'password',
      root: undefined,
    });
  });
});

function listening(host: string) {
  return { clientListen: { host, port: 7480 }, httpListen: { host, port: 7482 } };
}
