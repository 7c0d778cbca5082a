// Backups as scripts take them: checked, incremental, through a pipe, in a directory with a limit, and with users.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type RemoraClient } from 'remora';
import { AdminClient } from 'remora/admin';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { RemoraCommand } from './command.ts';
import { jsonHere, runHere } from './command-line.ts';
import { Cluster } from './harness.ts';

const dir = mkdtempSync(join(tmpdir(), 'remora-backups-'));
const at = (name: string): string => join(dir, name);
let cluster: Cluster;
let client: RemoraClient;
const command = new RemoraCommand(() => cluster.endpoints);
const others: Cluster[] = [];

beforeAll(async () => {
  cluster = await Cluster.start({ nodes: 1 });
  client = await connect({ endpoints: cluster.endpoints });
  const puts = Array.from({ length: 100 }, (_, i) => ({ put: `k${1_000 + i}`, value: `v${i}` }));
  await client.kv.txn({ success: puts });
});
afterAll(async () => {
  await command.endAll();
  await client?.close();
  await Promise.all([cluster, ...others].map((each) => each?.stop()));
  rmSync(dir, { recursive: true, force: true });
});

const admin = (...args: readonly string[]) => runHere(cluster.endpoints, ['admin', ...args]);
const json = (...args: readonly string[]) => jsonHere(cluster.endpoints, ['admin', ...args]) as Promise<object>;

async function emptyCluster(): Promise<Cluster> {
  const other = await Cluster.start({ nodes: 1 });
  others.push(other);
  return other;
}

async function keysOf(of: Cluster): Promise<readonly string[]> {
  const reader = await connect({ endpoints: of.endpoints });
  try {
    const { kvs } = await reader.kv.range({ prefix: '' });
    return kvs.map(({ key, value }) => `${key}=${value}`);
  } finally {
    await reader.close();
  }
}

test('a chain of backups is checked, and restores what the cluster had', async () => {
  const [whole, first, second] = [at('whole'), at('first'), at('second')];
  const { revision } = (await json('backup', whole)) as { revision: number };
  await client.kv.put('k1001', 'changed');
  await client.kv.delete('k1002');
  await client.kv.put('new', '1');
  expect(await json('backup', '--since', whole, first)).toMatchObject({ keys: 2, deletedKeys: 1, since: revision });
  await client.kv.delete('new');
  const firstRevision = ((await json('backup', '--verify', first)) as { revision: number }).revision;
  expect(await json('backup', '--since-revision', String(firstRevision), second)).toMatchObject({ deletedKeys: 1 });

  const { code, out } = await runHere(['127.0.0.1:1'], ['admin', 'backup', '--verify', whole, first, second]);
  expect(code).toBe(0);
  expect(out).toContain('a whole backup');
  expect(out).toContain(`incremental: continues the backup of revision ${revision}`);
  expect(out).toContain('these 3 backups are a chain');
  expect(await admin('backup', '--verify', whole, second)).toMatchObject({ code: 1 });

  const other = await emptyCluster();
  const alone = await runHere(other.endpoints, ['admin', 'restore', first]);
  expect(alone).toMatchObject({ code: 1, err: expect.stringContaining('is incremental') });
  const restored = await runHere(other.endpoints, ['admin', 'restore', whole, first, second]);
  expect(restored).toMatchObject({ code: 0, out: expect.stringContaining('authentication is off') });
  expect(await keysOf(other)).toEqual(await keysOf(cluster));
});

test('what changed since a compacted revision is not known, and the message says what to do', async () => {
  const old = at('old');
  await json('backup', old);
  await client.kv.put('k1003', 'again');
  await json('compact', '--yes');
  const refused = await admin('backup', '--since', old, at('late'));
  expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('was compacted, so what changed') });
  expect(refused.err).toContain('Take a whole backup');
  expect(readdirSync(dir)).not.toContain('late');
});

test('a backup goes to standard output, and is restored from standard input', async () => {
  const { code, out, err } = await command.run('admin', 'backup', '-');
  expect([code, err]).toEqual([0, expect.stringContaining('to standard output')]);
  const bytes = Buffer.from(out, 'latin1');
  writeFileSync(at('piped'), bytes);
  expect(await json('backup', '--verify', at('piped'))).toMatchObject({ keys: (await keysOf(cluster)).length });
  const other = await emptyCluster();
  const restore = new RemoraCommand(() => other.endpoints);
  const restored = await restore.begin(['admin', 'restore', '-'], { input: bytes }).ended;
  expect(restored).toMatchObject({ code: 0, out: expect.stringContaining('from standard input') });
  expect(await keysOf(other)).toEqual(await keysOf(cluster));
});

test('a directory keeps so many backups, and what they continue', async () => {
  const nightly = mkdtempSync(join(dir, 'nightly-'));
  for (let i = 0; i < 4; i++) expect((await admin('backup', '--keep', '2', nightly)).code).toBe(0);
  expect(readdirSync(nightly)).toHaveLength(2);
  for (let i = 0; i < 2; i++) expect((await admin('backup', '--keep', '1', '--since', nightly, nightly)).code).toBe(0);
  const names = readdirSync(nightly).sort();
  expect(names.map((name) => name.includes('incremental'))).toEqual([false, true, true]);
  const chain = await admin('backup', '--verify', ...names.map((name) => join(nightly, name)));
  expect(chain).toMatchObject({ code: 0, out: expect.stringContaining('are a chain') });
  expect(await admin('backup', nightly)).toMatchObject({ code: 2, err: expect.stringContaining('add --keep') });
  expect(await admin('backup', '--keep', '2', at('none'))).toMatchObject({ code: 2 });
});

test('users are in a backup on request, and authentication is on after their restore if it was', async () => {
  const file = at('with-users');
  const other = await emptyCluster();
  const last = await emptyCluster();
  const users = new AdminClient({ endpoints: other.endpoints, timeoutMs: 20_000, connectTimeoutMs: 5_000 });
  const roles = [
    {
      name: 'reader',
      keys: [{ key: Buffer.from('k'), end: Buffer.from('l'), access: 'read' }],
      locks: [{ namespace: 'shop', name: Buffer.from('o'), isPrefix: true, verb: 'acquire' }],
    },
  ];
  const stored = [
    { name: 'ann', passwordHash: 'the hash of ann', roles: ['reader'] },
    { name: 'root', passwordHash: '', roles: ['root'] },
  ];
  await users.importUsers({ enabled: false, users: stored, roles });
  users.close();
  const taken = await runHere(other.endpoints, ['admin', 'backup', '--with-users', file]);
  expect(taken).toMatchObject({ code: 0, out: expect.stringContaining('HASHES OF PASSWORDS') });
  expect((await admin('backup', '--verify', file)).out).toContain('2 users with HASHES OF PASSWORDS, 1 role');
  expect(readFileSync(file).includes('the hash of ann')).toBe(true);

  const without = await runHere(last.endpoints, ['admin', 'restore', file]);
  expect(without).toMatchObject({ code: 0, out: expect.stringContaining('2 users and roles were not restored') });
  const restored = await jsonHere(last.endpoints, ['admin', 'restore', '--with-users', file]);
  expect(restored).toMatchObject({ users: { addedUsers: 2, addedRoles: 1, enabled: false }, authentication: false });
  const again = await jsonHere(last.endpoints, ['admin', 'restore', '--with-users', file]);
  expect(again).toMatchObject({ users: { addedUsers: 0, presentUsers: 2 } });
  const reader = new AdminClient({ endpoints: last.endpoints, timeoutMs: 20_000, connectTimeoutMs: 5_000 });
  expect(await reader.exportUsers()).toEqual({ enabled: false, users: stored, roles });
  // As a restore does when authentication was on in the old cluster.
  expect(await reader.importUsers({ enabled: true, users: [], roles: [] })).toMatchObject({ enabled: true });
  await expect(reader.exportUsers()).rejects.toMatchObject({ code: expect.stringMatching(/AUTH|UNAUTH/) });
  reader.close();
});
