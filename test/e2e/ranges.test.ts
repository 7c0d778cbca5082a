import { connect } from 'remora';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { RemoraCommand } from './command.ts';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';

interface RangeJson {
  readonly id: number;
  readonly leaderNode: number;
}

/** A cluster that begins with three ranges: before g, from g on, and from p on. */
let cluster: Cluster;
const command = new RemoraCommand(() => cluster.endpoints);
const admin = (...args: readonly string[]) => command.begin(['admin', ...args]).ended;

async function ranges(): Promise<readonly RangeJson[]> {
  const { out } = await admin('ranges', '--json');
  return (JSON.parse(out) as { readonly ranges: readonly RangeJson[] }).ranges;
}

beforeAll(async () => {
  cluster = await Cluster.start({ flags: { 'pre-split': 'g,p' } });
});
afterAll(() => cluster.stop());

const KEYS = ['a', 'f', 'g', 'h', 'k', 'o', 'p', 'z'];

describe('a cluster that begins with several ranges', () => {
  test('has a leader for each of them, on different nodes, and serves their keys', async () => {
    const leaders = await eventually('all are led', async () => {
      const found = (await ranges()).map(({ leaderNode }) => leaderNode);
      return found.length === 3 && found.every((node) => node > 0) ? found : undefined;
    });
    expect(new Set(leaders).size).toBeGreaterThan(1);
    await using client = await connect({ endpoints: cluster.endpoints });
    for (const key of KEYS) await client.kv.put(key, `first ${key}`);
    const { kvs } = await client.kv.range({ prefix: '' });
    expect(kvs.map(({ key, value }) => `${key} ${value}`)).toEqual(KEYS.map((key) => `${key} first ${key}`));
  });

  test('is split by hand where it is told to; a place that is none is refused with what would be right', async () => {
    expect(await admin('split', '--key', 'k')).toMatchObject({ code: 0 });
    expect(await ranges()).toHaveLength(4);
    const again = await admin('split', '--key', 'k');
    expect(again.code).not.toBe(0);
    expect(again.err).toMatch(/range \d+ already starts at key:k/);
    await using client = await connect({ endpoints: cluster.endpoints });
    for (const key of KEYS) await client.kv.put(key, `second ${key}`);
    expect((await client.kv.get('k'))?.value.toString()).toBe('second k');
  });

  test('is merged by hand, while keys of both are written: each write is done once, in order', async () => {
    const [one, other] = (await ranges()).slice(1, 3);
    await using client = await connect({ endpoints: cluster.endpoints });
    let over = false;
    const written = ['g', 'k'].map(async (key) => {
      const versions: number[] = [];
      while (!over) {
        await client.kv.put(key, `second ${key}`);
        versions.push((await client.kv.get(key))?.version ?? 0);
      }
      return versions;
    });
    const merged = await admin('merge', String(one?.id), String(other?.id));
    over = true;
    expect(merged).toMatchObject({ code: 0 });
    expect(await ranges()).toHaveLength(3);
    for (const versions of await Promise.all(written)) {
      expect(versions.length).toBeGreaterThan(10);
      expect(versions).toEqual(versions.map((_, i) => (versions[0] ?? 0) + i));
    }
    const again = await admin('merge', String(one?.id), String(other?.id));
    expect(again.code).not.toBe(0);
  });

  test('writes under a lock that is in another range, and no more once somebody else has it', async () => {
    await using client = await connect({ endpoints: cluster.endpoints });
    const held = await client.lock('shipments').acquire();
    const before = { name: 'shipments', version: held.version };
    const both = [
      { put: 'g/fenced', value: 'one' },
      { put: 'x/fenced', value: 'one' },
    ];
    expect(await client.kv.txn({ compare: [{ held }], success: both })).toMatchObject({ succeeded: true });
    const { revision } = await client.kv.put('x/fenced', 'two', { fence: held });
    await held.release();
    const next = await client.lock('shipments').acquire();
    expect([held.version < revision, revision < next.version]).toEqual([true, true]);
    const fenced = expect.objectContaining({ code: 'FENCED' });
    await expect(client.kv.put('x/fenced', 'late', { fence: before })).rejects.toThrow(fenced);
    await expect(client.kv.delete({ prefix: 'x/' }, { fence: before })).rejects.toThrow(fenced);
    await expect(client.kv.txn({ success: both }, { fence: before })).rejects.toThrow(fenced);
    const late = await client.kv.txn({ compare: [{ held: before }], success: both, failure: [{ get: 'x/fenced' }] });
    expect(late).toMatchObject({ succeeded: false, results: [{ type: 'get', count: 1 }] });
    expect((await client.kv.get('x/fenced'))?.value.toString()).toBe('two');
    for (const prefix of ['g/', 'x/']) {
      expect(await client.kv.delete({ prefix }, { fence: next })).toMatchObject({ deleted: 1 });
    }
    await next.release();
  });

  test('has locks of several ranges held together by one client at a time, in whatever order they are asked for', async () => {
    await using first = await connect({ endpoints: cluster.endpoints });
    await using second = await connect({ endpoints: [...cluster.endpoints].reverse() });
    const names = ['all/1', 'kept/1', 'zone/1'];
    let [inside, most] = [0, 0];
    const versions: (readonly number[])[] = [];
    const turns = Array.from({ length: 8 }, (_, i) => {
      const wanted = i % 2 === 0 ? names : [...names].reverse();
      return (i % 3 === 0 ? first : second).lockAll(wanted).run({ wait: '20s' }, async (all) => {
        most = Math.max(most, ++inside);
        versions.push(i % 2 === 0 ? all.versions : [...all.versions].reverse());
        expect(await all.check()).toBe(true);
        inside--;
      });
    });
    await Promise.all(turns);
    expect([most, inside]).toEqual([1, 0]);
    // In each of the ranges they were granted in the same order.
    for (const at of names.keys()) {
      const ofOne = versions.map((each) => each[at] ?? 0);
      expect(ofOne).toEqual([...ofOne].sort((a, b) => a - b));
    }
    const left = await Promise.all(names.map((name) => first.locks.show(name)));
    expect(left).toEqual([undefined, undefined, undefined]);
  });

  test('has all of it after every node was killed', async () => {
    for (const node of cluster.nodes) node.signal('SIGKILL');
    await Promise.all(cluster.nodes.map((node) => node.exit));
    for (const node of cluster.nodes) node.start();
    await cluster.untilReady();
    await using client = await connect({ endpoints: cluster.endpoints, requestTimeout: '20s' });
    const { kvs } = await client.kv.range({ prefix: '' });
    expect(kvs.map(({ key, value }) => `${key} ${value}`)).toEqual(KEYS.map((key) => `${key} second ${key}`));
    expect(await ranges()).toHaveLength(3);
  });
});
