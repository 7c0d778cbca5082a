/**
 * People move here from etcd: a snapshot that a real etcd 3.4.23 wrote is imported. Files of etcd 3.6, which Debian
 * does not have, are made by `packages/cli/test/support` after etcd's source; the unit tests of the import read those.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type RemoraClient } from 'remora';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EtcdProcess, missingEtcd } from '../etcd-diff/servers/etcd-process.ts';
import { describeWith } from '../support/needs.ts';
import { jsonHere, runHere } from './command-line.ts';
import { Etcdctl, missingEtcdctl } from './etcd-twins/etcdctl.ts';
import { Cluster } from './harness.ts';

const KEYS = 3_000;
const LARGE = 'x'.repeat(700_000);

describeWith(missingEtcd() ?? missingEtcdctl(), 'a snapshot of etcd', () => {
  const dir = mkdtempSync(join(tmpdir(), 'remora-move-'));
  const file = join(dir, 'snapshot.db');
  let etcd: EtcdProcess;
  let cluster: Cluster;
  let client: RemoraClient;
  let lease = '';

  const etcdctl = async (args: string, input = ''): Promise<string> => {
    const { code, out, err } = await new Etcdctl(etcd.client, args.split(' '), input).end();
    if (code !== 0) throw new Error(`etcdctl ${args}: ${err}`);
    return out;
  };
  const admin = (...args: readonly string[]) => runHere(cluster.endpoints, ['admin', ...args]);
  const imported = (...args: readonly string[]) =>
    jsonHere(cluster.endpoints, ['admin', 'import-etcd', file, ...args]) as Promise<Record<string, unknown>>;

  beforeAll(async () => {
    [etcd, cluster] = await Promise.all([EtcdProcess.start(), Cluster.start({ nodes: 1 })]);
    client = await connect({ endpoints: cluster.endpoints });
    for (let at = 0; at < KEYS; at += 100) {
      const puts = Array.from({ length: 100 }, (_, i) => `put k${10_000 + at + i} "v${at + i}"\n`).join('');
      await etcdctl('txn', `\n${puts}\n\n`);
    }
    await etcdctl('put k10005 newest');
    await etcdctl('del k10007');
    await etcdctl('put other/large', LARGE);
    const [, id = ''] = /^lease ([0-9a-f]+) /.exec(await etcdctl('lease grant 500')) ?? [];
    lease = id;
    await etcdctl(`put other/leased alive --lease=${lease}`);
    await etcdctl('user add ann:secret');
    await etcdctl('role add reader');
    await etcdctl('role grant-permission reader read k --prefix');
    await etcdctl('user grant-role ann reader');
    await etcdctl(`snapshot save ${file}`);
  });
  afterAll(async () => {
    await client?.close();
    await Promise.all([etcd?.stop(), cluster?.stop()]);
    rmSync(dir, { recursive: true, force: true });
  });

  test('is described by a dry run, which needs no cluster', async () => {
    const { code, out } = await runHere(['127.0.0.1:1'], ['admin', 'import-etcd', '--dry-run', file]);
    expect(code).toBe(0);
    expect(out).toContain('etcd 3.5 or older');
    expect(out).toContain(`keys        ${KEYS + 1},`);
    expect(out).toContain('1 key of 1 lease');
    expect(out).toContain('1 user, 1 role; authentication is off');
  });

  test('refuses to replace a key, and then changes nothing', async () => {
    await client.kv.put('k10005', 'mine');
    expect(await admin('import-etcd', file)).toMatchObject({
      code: 1,
      err: expect.stringContaining('already has k10005 with another value; nothing was written'),
    });
    expect((await client.kv.range({ prefix: '' }, { countOnly: true })).count).toBe(1);
    await client.kv.delete('k10005');
  });

  test('is imported with its leases, above the revisions of etcd, and a second time changes nothing', async () => {
    const first = await imported();
    expect(first).toMatchObject({ keys: KEYS + 1, present: 0, leases: 1, leasesLost: 0, above: expect.any(Number) });
    expect((await client.kv.get('k10005'))?.value.toString()).toBe('newest');
    expect(await client.kv.get('k10007')).toBeUndefined();
    const leased = await client.kv.get('other/leased');
    expect(leased?.lease).toBe(BigInt(`0x${lease}`));
    expect(leased?.modRevision).toBeGreaterThan(Number(first.above));
    expect((await client.lease.timeToLive(leased?.lease ?? 0n))?.grantedTtlMs).toBe(500_000);
    expect((await client.kv.get('other/large'))?.value.length).toBe(LARGE.length);
    const { revision } = await client.kv.range('k10000');
    expect(await imported()).toMatchObject({ keys: 0, present: KEYS + 1 });
    expect((await client.kv.range('k10000')).revision).toBe(revision);
  });

  test('is completed below a prefix, and overwrites on request', async () => {
    await client.kv.put('k10001', 'mine');
    await client.kv.delete('other/large');
    expect(await imported('--prefix', 'other/')).toMatchObject({ keys: 1, present: 1 });
    expect((await client.kv.get('k10001'))?.value.toString()).toBe('mine');
    expect(await imported('--overwrite')).toMatchObject({ keys: 0, overwritten: 1, present: KEYS });
    expect((await client.kv.get('k10001'))?.value.toString()).toBe('v1');
  });

  test('has users, who come without passwords', async () => {
    const { code, out } = await admin('import-etcd', '--with-users', file);
    expect(code).toBe(0);
    expect(out).toContain('added 1 role, and 1 user WITHOUT PASSWORDS');
    const ctl = new Etcdctl(cluster.node(1).client, ['role', 'get', 'reader']);
    expect((await ctl.end()).out).toContain('[k, l)');
    expect((await new Etcdctl(cluster.node(1).client, ['user', 'get', 'ann']).end()).out).toContain('Roles: reader');
  });

  test('that was damaged or cut is refused', async () => {
    const bytes = readFileSync(file);
    const bad = join(dir, 'bad.db');
    writeFileSync(bad, bytes.subarray(0, bytes.length >> 1));
    expect((await admin('import-etcd', bad)).err).toMatch(/has no SHA-256 at its end|SHA-256 does not match/);
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
    writeFileSync(bad, bytes);
    expect(await admin('import-etcd', bad)).toMatchObject({
      code: 1,
      err: expect.stringContaining('is damaged: its SHA-256 does not match its contents'),
    });
    expect((await admin('import-etcd', join(dir, 'none'))).err).toContain('cannot read');
  });
});
