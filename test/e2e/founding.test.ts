/** A cluster that is founded with authentication: nobody gets in without a log-in, and the audit log shows attempts. */
import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';
import type { NodeProcess } from './node-process.ts';

const PASSWORD = 'correct horse battery staple';
let cluster: Cluster;

const passwordFile = (dir: string): string => join(dir, 'root.password');
const auditFile = (node: NodeProcess): string => join(cluster.dir, `${node.name}.audit`);

beforeAll(async () => {
  cluster = await Cluster.start({
    nodes: 3,
    flagsOf(name, dir) {
      writeFileSync(passwordFile(dir), `${PASSWORD}\n`, { mode: 0o600 });
      return {
        'initial-root-password-file': passwordFile(dir),
        'audit-log': join(dir, `${name}.audit`),
        'audit-writes': 'true',
      };
    },
  });
});
afterAll(() => cluster?.stop());

type Line = Readonly<Record<string, unknown>>;

function linesOf(text: string): readonly Line[] {
  return text
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Line);
}

function audited(node: NodeProcess): readonly Line[] {
  return existsSync(auditFile(node)) ? linesOf(readFileSync(auditFile(node), 'utf8')) : [];
}

async function post(node: NodeProcess, path: string, body: object, authorization?: string) {
  const headers = { 'content-type': 'application/json', ...(authorization !== undefined && { authorization }) };
  const response = await fetch(`http://${node.http}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  return { status: response.status, answer: (await response.json()) as Line };
}

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const basic = (user: string, password: string): string => `Basic ${base64(`${user}:${password}`)}`;
const PUT = { key: base64('greeting'), value: base64('hello') };
const logIn = (node: NodeProcess, name: string, password: string) =>
  post(node, '/v3/auth/authenticate', { name, password });

describe('a cluster that is founded with a password', () => {
  test('serves nobody who has not logged in, on any node, and root with the password', async () => {
    for (const node of cluster.nodes) {
      const { status, answer } = await post(node, '/v3/kv/put', PUT);
      expect([status, answer.code], JSON.stringify(answer)).toEqual([400, 3]);
      expect((await post(node, '/v3/kv/put', PUT, basic('root', PASSWORD))).status).toBe(200);
      const { answer: loggedIn } = await logIn(node, 'root', PASSWORD);
      expect((await post(node, '/v3/kv/put', PUT, String(loggedIn.token))).status).toBe(200);
    }
  });

  const wrong = [
    { name: 'an empty password', user: 'root', password: '' },
    { name: 'another password', user: 'root', password: 'sesame' },
    { name: 'a password of 10 kB', user: 'root', password: 'x'.repeat(10_240) },
    { name: 'the password with a NUL', user: 'root', password: `${PASSWORD}\0` },
    { name: 'a user who does not exist', user: 'eve', password: PASSWORD },
  ];
  test.each(wrong)('refuses $name in the same words, and records it once with its address', async (row) => {
    const node = cluster.node(1);
    const before = audited(node).length;
    const { status, answer } = await logIn(node, row.user, row.password);
    expect([status, answer.message]).toEqual([400, expect.stringContaining('authentication failed')]);
    const lines = await eventually('it is recorded', () => {
      const found = audited(node).slice(before);
      return found.length > 0 ? found : undefined;
    });
    expect(lines).toEqual([
      expect.objectContaining({
        ...{ action: 'logIn', decision: 'failed', principal: row.user, method: 'password' },
        ...{ address: '127.0.0.1', door: 'http' },
      }),
    ]);
  });

  test('refuses forged tokens, and those of another cluster and of users who were deleted', async () => {
    const node = cluster.node(2);
    const root = basic('root', PASSWORD);
    await post(node, '/v3/auth/user/add', { name: 'ann', password: 'pw' }, root);
    const { answer } = await logIn(node, 'ann', 'pw');
    const token = String(answer.token);
    expect((await post(node, '/v3/kv/put', PUT, token)).status).toBe(403);
    await post(node, '/v3/auth/user/delete', { name: 'ann' }, root);
    const before = audited(node).length;
    const ofAnother = `r1.${Buffer.from('["root",1,9999999999999]').toString('base64url')}.c2lnbmF0dXJl`;
    for (const bad of [token, 'forged', ofAnother, `${token}x`]) {
      expect((await post(node, '/v3/kv/put', PUT, bad)).status, bad).toBe(401);
    }
    const found = await eventually('they are recorded', () => {
      const uses = audited(node)
        .slice(before)
        .filter(({ action }) => action === 'useToken');
      return uses.length >= 4 ? uses : undefined;
    });
    expect(found.map(({ decision }) => decision)).toEqual(Array(4).fill('failed'));
  });

  test('keeps root, and says what is wrong with changes that cannot be', async () => {
    const node = cluster.node(1);
    const root = basic('root', PASSWORD);
    const deleted = await post(node, '/v3/auth/user/delete', { name: 'root' }, root);
    expect(deleted.answer.message).toContain('invalid auth management');
    const granted = await post(node, '/v3/auth/user/grant', { user: 'root', role: 'none' }, root);
    expect(granted.answer.message).toContain('role name not found');
    const added = await post(node, '/v3/auth/user/add', { name: 'bob', password: 'x'.repeat(10_240) }, root);
    expect(added.answer.message).toContain('at most 1024 bytes');
    const lines = await eventually('they are recorded', () => {
      const found = audited(node).filter(({ principal, decision }) => principal === 'root' && decision === 'failed');
      return found.filter(({ action }) => action !== 'logIn').length >= 3 ? found : undefined;
    });
    expect(lines.filter(({ action }) => action !== 'logIn').map(({ action, targets }) => [action, targets])).toEqual([
      ['deleteUser', ['the user "root"']],
      ['grantRole', ['the user "root"', 'the role "none"']],
      ['addUser', ['the user "bob"']],
    ]);
  });

  test('shows it in its metrics', async () => {
    const text = await (await fetch(`http://${cluster.node(1).health}/metrics`)).text();
    for (const line of ['remora_auth_enabled 1', 'remora_auth_root_users 1', 'remora_audit_dropped_total 0']) {
      expect(text).toContain(line);
    }
    expect(text).toMatch(/remora_auth_refused_log_ins_total\{reason="password"\} [1-9]/);
  });

  test('has no secret in its logs, and the audit log is for its own user', async () => {
    for (const node of cluster.nodes) {
      const logs = node.log() + readFileSync(auditFile(node), 'utf8');
      for (const secret of [PASSWORD, 'sesame', '$scrypt', base64('hello'), '"hello"']) {
        expect(logs).not.toContain(secret);
      }
      expect(statSync(auditFile(node)).mode & 0o777).toBe(0o600);
      expect(audited(node).some(({ action, decision }) => action === 'put' && decision === 'allowed')).toBe(true);
    }
  });

  test('opens the audit log again on SIGHUP', async () => {
    const node = cluster.node(3);
    renameSync(auditFile(node), `${auditFile(node)}.1`);
    node.signal('SIGHUP');
    await eventually('there is another file', async () => {
      await post(node, '/v3/kv/put', PUT);
      return audited(node).length > 0;
    });
  });

  test('starts again without the file, says once that it has no effect, and has the same users', async () => {
    rmSync(passwordFile(cluster.dir));
    const node = cluster.node(1);
    await cluster.restart(1);
    await eventually('root may write', async () => {
      return (await post(node, '/v3/kv/put', PUT, basic('root', PASSWORD))).status === 200;
    });
    expect((await post(node, '/v3/kv/put', PUT)).status).toBe(400);
    expect(linesOf(node.log()).filter(({ msg }) => String(msg).includes('has no effect any more'))).toHaveLength(1);
  });
});

test('a node does not start with a password file that cannot be used, and says why', async () => {
  const alone = await Cluster.start({ nodes: 1, started: 0, awaitReady: false });
  const [node, file] = [alone.node(1), join(alone.dir, 'unusable')];
  try {
    for (const [text, says] of [
      [undefined, 'cannot read --initial-root-password-file'],
      ['a\nb\n', 'several lines'],
      ['', 'must not be empty'],
    ] as const) {
      if (text !== undefined) writeFileSync(file, text);
      node.start({ 'initial-root-password-file': file });
      await eventually('it has ended', () => !node.running);
      expect((await node.exit).code).toBe(2);
      expect(node.logTail(3)).toContain(says);
    }
  } finally {
    await alone.stop();
  }
});
