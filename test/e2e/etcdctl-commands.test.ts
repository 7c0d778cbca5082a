import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../support/needs.ts';
import { runHere } from './command-line.ts';
import { Etcdctl, missingEtcdctl, type Said } from './etcd-twins/etcdctl.ts';
import { NO_ROW, type Places, ROWS, type Row } from './etcdctl-commands/table.ts';
import { Cluster } from './harness.ts';

describeWith(missingEtcdctl(), 'etcdctl against three nodes and four ranges', () => {
  let cluster: Cluster;
  let other: Cluster;
  let places: Places;
  const dir = mkdtempSync(join(tmpdir(), 'remora-etcdctl-'));

  beforeAll(async () => {
    [cluster, other] = await Promise.all([
      Cluster.start({ nodes: 3, flags: { 'pre-split': 'f,m,y' } }),
      Cluster.start({ nodes: 1 }),
    ]);
    // Nothing else may move the leaders that the rows name.
    for (const scheduler of ['leader-count', 'leader-load', 'merge']) {
      expect(
        await runHere(cluster.endpoints, ['admin', 'schedulers', 'pause', '--for', '1h', scheduler]),
      ).toMatchObject({
        code: 0,
      });
    }
    const ALL = cluster.endpoints.join(',');
    const granted = await run(ALL, { args: 'lease grant 500', prints: /./ });
    const [, LEASE = ''] = /^lease ([0-9a-f]+) /.exec(granted.out) ?? [];
    const leader = await leaderOf(ALL);
    const follower = [1, 2, 3].find((n) => n !== leader) ?? 0;
    places = {
      ...{ ALL, ONE: cluster.node(1).client, OTHER: other.node(1).client, LEADER: cluster.node(leader).client },
      ...{ FOLLOWER_ID: String(follower), LEASE, DIR: dir },
    };
  });
  afterAll(async () => {
    await Promise.all([cluster?.stop(), other?.stop()]);
    rmSync(dir, { recursive: true, force: true });
  });

  test.each(ROWS)('$args', async (row) => {
    const { code, out, err } = await run(places.ALL, placed(row, places));
    expect(out + err).toMatch(placed(row, places).prints);
    if (row.until === undefined) expect(code === 0).toBe(row.fails !== true);
  });

  test('the image of a snapshot is a backup that can be restored', async () => {
    const restored = await runHere(other.endpoints, ['admin', 'restore', join(dir, 'image')]);
    expect(restored).toMatchObject({ code: 0, out: expect.stringContaining('restored 2 keys') });
    const { out } = await run(other.node(1).client, { args: 'get --from-key a', prints: /./ });
    expect(out).toBe('kept/1\none\nz/kept\ntwo\n');
  });

  test('every command of etcdctl has a row', () => {
    const { stdout } = spawnSync('etcdctl', ['help'], {
      encoding: 'utf8',
      env: { ETCDCTL_API: '3', PATH: process.env.PATH },
    });
    const commands = [...stdout.matchAll(/^\t([a-z-]+(?: [a-z-]+)?)\t+\S/gm)].map(([, command = '']) => command);
    expect(commands.length).toBeGreaterThan(40);
    const told = ROWS.map(({ args }) => args.replace(/^--endpoints \S+ /, ''));
    const missing = commands.filter(
      (command) => !NO_ROW.includes(command) && !told.some((args) => `${args} `.startsWith(`${command} `)),
    );
    expect(missing).toEqual([]);
  });
});

async function run(endpoint: string, { args, input, until }: Row): Promise<Said> {
  const words = args.split(' ');
  const own = words[0] === '--endpoints';
  const command = new Etcdctl(own ? (words[1] ?? '') : endpoint, own ? words.slice(2) : words, input);
  if (until === undefined) return command.end();
  await command.says(until);
  return command.interrupt();
}

function placed(row: Row, places: Places): Row {
  const fill = (text: string): string => text.replaceAll(/\$([A-Z_]+)/g, (_, name: keyof Places) => places[name]);
  return { ...row, args: fill(row.args), prints: new RegExp(fill(row.prints.source), row.prints.flags) };
}

async function leaderOf(endpoints: string): Promise<number> {
  const { out } = await run(endpoints, { args: 'endpoint status -w json', prints: /./ });
  const [{ Status }] = JSON.parse(out) as [{ readonly Status: { readonly leader: number } }];
  return Status.leader;
}
