/** `remora admin` as operators use it, against a cluster of three nodes. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect } from 'remora';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { RemoraCommand } from './command.ts';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';

let cluster: Cluster;
beforeAll(async () => {
  cluster = await Cluster.start();
});
afterAll(() => cluster.stop());

const command = new RemoraCommand(() => cluster.endpoints);
afterEach(() => command.endAll());
const admin = (...args: readonly string[]) => command.run('admin', ...args);
const json = (...args: readonly string[]) => command.json('admin', ...args);

interface RangeJson {
  readonly id: number;
  readonly leaderNode: number;
  readonly replicas: readonly { readonly state: string; readonly logBehind: number }[];
}

/** The one range, once its leader and both followers answer. */
function settledRange(): Promise<RangeJson> {
  return eventually('the range is whole', async () => {
    const { ranges } = (await json('ranges')) as { ranges: readonly RangeJson[] };
    const [range] = ranges;
    return range?.replicas.every(({ logBehind }) => logBehind === 0) ? range : undefined;
  });
}

describe('looking', () => {
  test('at nodes: all of them, and one by name or id', async () => {
    const { nodes } = (await json('nodes')) as { nodes: readonly { name: string; state: string; replicas: number }[] };
    expect(nodes).toMatchObject(['n1', 'n2', 'n3'].map((name) => ({ name, state: 'up' })));
    const { out } = await admin('nodes', 'show', 'n2');
    expect(out).toMatch(/^id +2$/m);
    expect((await admin('nodes', 'show', '2')).out).toMatch(/^NODE +n2$/m);
    expect(await admin('nodes', 'show', 'n7')).toMatchObject({
      code: 1,
      err: 'remora: there is no node n7; there are n1 (1), n2 (2), n3 (3)\n',
    });
  });

  test('at ranges: the list, one, and the one that has a key', async () => {
    await command.run('kv', 'put', 'looked-at', 'x');
    const range = await settledRange();
    expect(range.replicas.map(({ state }) => state).sort()).toEqual(['leader', 'replicate', 'replicate']);
    const byKey = (await json('ranges', 'ls', '--key', 'looked-at')) as { ranges: readonly RangeJson[] };
    expect(byKey.ranges[0]?.id).toBe(range.id);
    expect((await admin('ranges', 'show', String(range.id))).out).toMatch(/^data +\d+ keys?/m);
    expect(await admin('ranges', 'show', '77')).toMatchObject({
      code: 1,
      err: `remora: unknown range 77; the ranges are ${range.id} (RANGE_NOT_FOUND)\n`,
    });
  });

  test('again and again, a line of JSON each time, until told to stop', async () => {
    const run = command.begin(['admin', 'nodes', '--watch', '100ms', '--json']);
    const lines = await eventually('it has looked three times', () => {
      const found = run.out.split('\n').slice(0, -1);
      return found.length >= 3 ? found : undefined;
    });
    for (const line of lines) expect(JSON.parse(line)).toMatchObject({ nodes: { length: 3 } });
    run.child.kill('SIGINT');
    expect(await run.ended).toMatchObject({ code: 0, err: '' });
  });

  test('at everything else in the same way', async () => {
    const { id } = await settledRange();
    const views = [
      ['nodes', 'show', 'n1'],
      ['ranges'],
      ['ranges', 'show', String(id)],
      ['hot'],
      ['check'],
      ['why', String(id)],
      ['why', 'n1'],
      ['operators'],
      ['operators', 'history'],
      ['schedulers'],
      ['settings'],
      ['upgrade'],
    ];
    for (const view of views) {
      const run = command.begin(['admin', ...view, '--watch', '100ms', '--json']);
      const line = await eventually(`${view.join(' ')} has looked twice`, () => run.out.split('\n').slice(0, -1)[1]);
      expect(JSON.parse(line)).toBeTypeOf('object');
      run.child.kill('SIGINT');
      expect(await run.ended).toMatchObject({ code: 0, err: '' });
    }
  });

  test('at load, hottest first', async () => {
    expect(await json('hot', '--by', 'writes')).toMatchObject({ more: false });
    expect(await admin('hot', '--by', 'colour')).toMatchObject({ code: 2 });
  });
});

describe('steering', () => {
  test('a leader is handed over, and an unknown or equal one is told', async () => {
    const { id, leaderNode } = await settledRange();
    const to = (leaderNode % 3) + 1;
    expect(await json('transfer-leader', String(id), `n${to}`)).toEqual({ range: id, from: leaderNode, to });
    expect((await admin('transfer-leader', String(id), `n${to}`)).out).toBe(`n${to} already leads range ${id}\n`);
    expect(await settledRange()).toMatchObject({ leaderNode: to });
    expect((await admin('transfer-leader', String(id), 'n9')).code).toBe(1);
    expect((await admin('transfer-leader', '99', 'n1')).err).toContain('unknown range 99');
  });

  test('settings are changed, explained, and given their defaults again', async () => {
    expect((await admin('settings', 'set', 'down-after', '300s')).out).toBe('down-after = 5m\n');
    expect((await admin('settings', 'get', 'down-after')).out).toBe('5m\n');
    expect((await admin('settings', 'describe', 'down-after')).out).toContain('Value: 5m. Default: 10m.');
    expect(await admin('settings', 'set', 'down-after', '3s')).toMatchObject({
      code: 1,
      err: expect.stringContaining('down-after must be longer than suspect-after'),
    });
    expect((await admin('settings', 'reset', 'down-after')).out).toBe('down-after = 10m\n');
    expect((await admin('settings', 'set', 'down-aftr', '5m')).err).toContain('did you mean down-after?');
  });

  test('an upgrade has nothing to finalize while all nodes are of one release', async () => {
    const { inForce, nodes, ...rest } = (await json('upgrade', 'status')) as {
      readonly inForce: string;
      readonly nodes: readonly { readonly canWriteTo: string; readonly knows: string }[];
    };
    expect(rest).toEqual({ newest: inForce, blockers: [] });
    expect(nodes.map(({ canWriteTo, knows }) => [canWriteTo, knows])).toEqual([1, 2, 3].map(() => [inForce, inForce]));
    expect((await admin('upgrade')).out).toContain(`Version in force: ${inForce}\n`);
    expect((await admin('upgrade', 'finalize')).out).toContain('Nothing to finalize');
  });

  test('history is forgotten only by who means it', async () => {
    const first = (await command.json('kv', 'put', 'aged', 'young')) as { revision: number };
    await command.run('kv', 'put', 'aged', 'old');
    expect(await admin('compact')).toMatchObject({ code: 2, err: expect.stringContaining('--yes') });
    expect((await command.run('kv', 'get', 'aged', '--revision', String(first.revision))).out).toBe('young');
    const { revision } = (await json('compact', '--yes')) as { revision: number };
    expect(revision).toBeGreaterThan(first.revision);
    expect((await command.run('kv', 'get', 'aged', '--revision', String(first.revision))).err).toContain('COMPACTED');
    expect((await command.run('kv', 'get', 'aged')).out).toBe('old');
  });
});

describe('a backup', () => {
  let dir: string;
  let other: Cluster;
  let elsewhere: RemoraCommand;
  beforeAll(async () => {
    dir = mkdtempSync(join(tmpdir(), 'remora-backup-'));
    other = await Cluster.start({ nodes: 1 });
    elsewhere = new RemoraCommand(() => other.endpoints);
  });
  afterAll(async () => {
    await other.stop();
    rmSync(dir, { recursive: true, force: true });
  });
  afterEach(() => elsewhere.endAll());

  interface Pairs {
    readonly kvs: readonly { readonly key: unknown; readonly value: unknown; readonly modRevision: number }[];
  }
  const pairsOf = async (of: RemoraCommand, prefix: string) =>
    ((await of.json('kv', 'get', '--prefix', prefix)) as Pairs).kvs.map(({ key, value }) => [key, value]);

  test('is all keys at one revision, restored into an empty cluster above all old revisions', async () => {
    const file = join(dir, 'whole.remora');
    const client = await connect({ endpoints: cluster.endpoints });
    try {
      const many = Array.from({ length: 300 }, (_, i) => ({ put: `many/${1_000 + i}`, value: `v${i}`.repeat(100) }));
      for (let at = 0; at < many.length; at += 100) await client.kv.txn({ success: many.slice(at, at + 100) });
      await client.kv.put(Buffer.from([0xff, 0, 1]), Buffer.from([0, 255]));
      const session = await client.session();
      await client.kv.put('many/ephemeral', 'x', { lease: session.lease });
      await client.kv.put('many/1000', 'before');
      const kept = await pairsOf(command, 'many/1');
      const { revision } = (await json('backup', file)) as { revision: number };
      await client.kv.put('many/1000', 'after');

      const restored = (await elsewhere.json('admin', 'restore', file)) as { above: number; leftOut: number };
      expect(restored).toMatchObject({ leftOut: 1, before: 0 });
      expect(restored.above).toBeGreaterThan(revision);
      expect(await pairsOf(elsewhere, 'many/1')).toEqual(kept);
      expect((await elsewhere.run('kv', 'get', 'many/ephemeral')).code).toBe(1);
      const { kvs } = (await elsewhere.json('kv', 'get', 'many/1000')) as Pairs;
      expect(kvs).toMatchObject([{ value: 'before' }]);
      expect(kvs[0]?.modRevision).toBeGreaterThan(restored.above);
      const old = await elsewhere.run('kv', 'get', 'many/1000', '--revision', String(revision));
      expect(old.err).toContain('COMPACTED');
    } finally {
      await client.close();
    }
  });

  test('is gone on with where a restore broke off, and refused beside other data', async () => {
    const file = join(dir, 'whole.remora');
    const client = await connect({ endpoints: other.endpoints });
    try {
      const last = Buffer.from([0xff, 0, 1]);
      const { count } = await client.kv.range({ prefix: '' }, { countOnly: true });
      await client.kv.delete(last);
      expect(await elsewhere.json('admin', 'restore', file)).toMatchObject({ keys: 1, before: count - 1, leftOut: 1 });
      expect((await client.kv.get(last))?.value).toEqual(Buffer.from([0, 255]));
      expect(await elsewhere.json('admin', 'restore', file)).toMatchObject({ keys: 0, before: count });

      await client.kv.delete('many/1017');
      const refused = await elsewhere.run('admin', 'restore', file);
      expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('and they are not from') });
      expect((await client.kv.get('many/1017'))?.value).toBeUndefined();
    } finally {
      await client.close();
    }
  });

  test('is not replaced unasked, and refused when it is damaged, before anything is written', async () => {
    const file = join(dir, 'whole.remora');
    expect(await admin('backup', file)).toMatchObject({ code: 2, err: expect.stringContaining('Add --yes') });
    const bytes = readFileSync(file);
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
    const damaged = join(dir, 'damaged.remora');
    writeFileSync(damaged, bytes);
    const refused = await elsewhere.run('admin', 'restore', damaged);
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining('is damaged: a checksum does not match') });
    expect((await elsewhere.run('admin', 'restore', join(dir, 'none'))).err).toContain('cannot read');
    expect((await admin('backup', join(dir, 'no', 'such', 'place'))).err).toContain('cannot write');
    expect(readdirSync(dir).sort()).toEqual(['damaged.remora', 'whole.remora']);
  });
});

describe('a node that is killed', () => {
  test('is what the check tells of, with its replicas; nothing is left to tell when it is back', async () => {
    await eventually('nothing is wrong', async () => ((await admin('check')).code === 0 ? true : undefined));
    await cluster.node(3).end('SIGKILL');
    const report = await eventually('the silence is noticed', async () => {
      const { code, out } = await admin('check', '--json');
      const { conditions } = JSON.parse(out) as { conditions: readonly { name: string; nodeId: number }[] };
      return code === 1 && conditions.some(({ name }) => name === 'silentNode') ? conditions : undefined;
    });
    expect(report).toContainEqual(expect.objectContaining({ name: 'silentReplica', nodeId: 3 }));
    const { id } = await settledLeader();
    expect(await admin('transfer-leader', String(id), 'n3')).toMatchObject({ code: 1 });
    await cluster.restart(3);
    await eventually('nothing is wrong', async () => ((await admin('check')).code === 0 ? true : undefined));
  });
});

/** The one range, once somebody leads it. */
function settledLeader(): Promise<RangeJson> {
  return eventually('the range has a leader', async () => {
    const { ranges } = (await json('ranges')) as { ranges: readonly RangeJson[] };
    return ranges[0]?.replicas.some(({ state }) => state === 'leader') ? ranges[0] : undefined;
  });
}
