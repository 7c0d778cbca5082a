/** `remora admin` as operators steer a cluster with it: three nodes that founded it, and one that joined. */
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { RemoraCommand } from './command.ts';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';

const SLOW = 60_000;

let cluster: Cluster;
beforeAll(async () => {
  cluster = await Cluster.start();
  const joining = await cluster.addJoining({ label: 'zone=b' });
  joining.start();
  await joining.untilReady();
  // What balances the cluster would move ranges while a test looks.
  await json('schedulers', 'pause', 'all', '--for', '1h');
}, SLOW);
afterAll(() => cluster.stop());

const command = new RemoraCommand(() => cluster.endpoints);
afterEach(() => command.endAll());
const admin = (...args: readonly string[]) => command.run('admin', ...args);
const json = (...args: readonly string[]) => command.json('admin', ...args);

interface NodeJson {
  readonly id: number;
  readonly name: string;
  readonly state: string;
  readonly duty: string;
  readonly replicas: number;
  readonly leaders: number;
  readonly labels: Readonly<Record<string, string>>;
}

interface RangeJson {
  readonly id: number;
  readonly leaderNode: number;
  readonly replicas: readonly { readonly nodeId: number; readonly type: string; readonly state: string }[];
}

const nodes = async () => ((await json('nodes')) as { nodes: readonly NodeJson[] }).nodes;
const ranges = async () => ((await json('ranges')) as { ranges: readonly RangeJson[] }).ranges;
const rangeOf = async (key: string) => (await json('ranges', 'show', '--key', key)) as RangeJson;

const nodesOf = ({ replicas }: RangeJson) => replicas.map(({ nodeId }) => nodeId).sort((a, b) => a - b);

async function joinedNode(): Promise<NodeJson> {
  const found = (await nodes()).find(({ name }) => name === 'n4');
  if (found === undefined) throw new Error('n4 has not joined');
  return found;
}

function quiet(): Promise<true> {
  return eventually('nothing is wrong', async () => ((await admin('check')).code === 0 ? true : undefined));
}

describe('ranges', () => {
  test('are split at a key, and not twice, nor where the key is not', async () => {
    for (const key of ['a', 'm', 'z']) await command.run('kv', 'put', key, `value of ${key}`);
    const [whole] = await ranges();
    const split = await admin('split', '--key', 'm');
    expect(split).toMatchObject({ code: 0, out: `range ${whole?.id} is split\n` });
    const [left, right] = await eventually('both are known', async () => {
      const found = await ranges();
      return found.length === 2 ? found : undefined;
    });
    expect([(await rangeOf('lz')).id, (await rangeOf('m')).id]).toEqual([left?.id, right?.id]);
    expect(await admin('split', '--key', '0x6d')).toMatchObject({
      code: 1,
      err: `remora: range ${right?.id} begins with the key m already; choose one behind it\n`,
    });
    expect((await admin('split', String(left?.id), '--key', 'z')).err).toContain(
      `the key z is not in range ${left?.id}, which goes from - to key:m; range ${right?.id} has it`,
    );
    expect((await admin('split', '77')).err).toContain('there is no range 77');
    expect((await admin('split', '--key', '0x6')).err).toContain('expected pairs of hex digits');
    for (const key of ['a', 'm', 'z']) expect((await command.run('kv', 'get', key)).out).toBe(`value of ${key}`);
  });

  test(
    'move to another node, step by step, with all that is in them',
    async () => {
      const { id } = await rangeOf('m');
      const moved = await admin('move', String(id), 'n1', 'n4');
      expect(moved).toMatchObject({ code: 0, out: `n4 has a replica of range ${id} now, and n1 has none\n` });
      expect(moved.err).toMatch(/^operator \d+: .*add a learner on node/m);
      expect(nodesOf(await rangeOf('m'))).toEqual([2, 3, (await joinedNode()).id]);
      expect((await command.run('kv', 'get', 'z')).out).toBe('value of z');
      const { operators } = (await json('operators', 'history', '--range', String(id))) as {
        operators: readonly { readonly status: string; readonly reason: string }[];
      };
      expect(operators[0]).toMatchObject({ status: 'success', reason: expect.stringContaining('move from node 1') });
    },
    SLOW,
  );

  test('do not move where that is not possible: the refusal says what would be right', async () => {
    const { id } = await rangeOf('m');
    const refused = async (...args: readonly string[]) => {
      const { code, err } = await admin(...args);
      expect(code).toBe(1);
      return err;
    };
    expect(await refused('move', String(id), 'n2', 'n4')).toContain('has a replica already; nodes 1 can take it');
    expect(await refused('move', String(id), 'n1', 'n4')).toContain(
      'has no voter on node 1; it has them on nodes 2, 3',
    );
    expect(await refused('move', String(id), 'n1', 'n9')).toContain('there is no node n9; there are n1 (1)');
    expect(await refused('add-replica', String(id), 'n1')).toContain('has 3 of 3 replicas; move one');
    expect(await refused('merge', String(id), String(id))).toContain('only neighbours can be merged');
    expect(await admin('remove-replica', String(id), 'n2')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--yes'),
    });
  });

  test(
    'merge with their neighbours, once they are on the same nodes',
    async () => {
      const [left, right] = [await rangeOf('a'), await rangeOf('m')];
      const pair = [String(left.id), String(right.id)];
      expect((await admin('merge', ...pair)).err).toContain('is on other nodes');
      await json('move', String(right.id), 'n4', 'n1');
      expect(await admin('merge', ...pair)).toMatchObject({
        code: 0,
        out: `range ${left.id} has the keys of range ${right.id} too\n`,
      });
      expect(await ranges()).toMatchObject([{ id: left.id }]);
      for (const key of ['a', 'm', 'z']) expect((await command.run('kv', 'get', key)).out).toBe(`value of ${key}`);
    },
    SLOW,
  );

  test('say why nothing happens to them', async () => {
    const { id } = await rangeOf('a');
    expect((await admin('why', String(id))).out).toContain('nothing is wrong with it');
    expect((await admin('why', 'n4')).out).toContain('it has 0 replicas, 0 of them leaders');
    expect((await admin('why', '77')).err).toContain('there is no range 77');
  });
});

describe('operators and schedulers', () => {
  test(
    'of two who want different things of one range, the second one learns what is under way',
    async () => {
      const { id } = await rangeOf('a');
      const first = command.begin(['admin', 'move', String(id), 'n1', 'n4', '--no-wait', '--json']);
      const { out } = await first.ended;
      const { id: operator } = JSON.parse(out) as { id: number };
      const second = await admin('move', String(id), 'n2', 'n4');
      if (second.code === 0) throw new Error('two moves at once');
      expect(second.err).toMatch(new RegExp(`operator ${operator} is under way|has a replica already|changing`));
      const { operators } = await eventually('the first one has ended', async () => {
        const ended = (await json('operators', 'history')) as { operators: readonly { id: number; status: string }[] };
        return ended.operators.some((each) => each.id === operator) ? ended : undefined;
      });
      expect(operators.find((each) => each.id === operator)).toMatchObject({ status: 'success' });
      expect((await admin('operators', 'cancel', String(operator))).err).toContain('has ended as success already');
      await json('move', String(id), 'n4', 'n1');
    },
    SLOW,
  );

  test('rest and run as they are told', async () => {
    const { schedulers } = (await json('schedulers')) as { schedulers: readonly { name: string; pausedMs: number }[] };
    expect(schedulers.length).toBeGreaterThan(3);
    expect(schedulers.every(({ pausedMs }) => pausedMs > 0)).toBe(true);
    expect((await admin('schedulers', 'resume', 'leader-count')).out).toMatch(/^leader-count +runs/m);
    expect((await admin('schedulers', 'pause', 'leader-cout')).err).toContain('did you mean leader-count?');
    expect((await admin('schedulers', 'set', 'bytes', 'load-gap-min', '7')).err).toContain('it goes by bytes-');
    expect((await admin('schedulers', 'set', 'bytes', 'bytes-tolerance-percent', '15')).out).toContain('= 15\n');
    await json('schedulers', 'pause', 'all', '--for', '1h');
    expect((await json('rebalance', '--dry-run')) as object).toMatchObject({ dryRun: true, changes: [] });
  });
});

describe('nodes', () => {
  test(
    'give their leaders away, and take them again',
    async () => {
      const { leaderNode } = await rangeOf('a');
      const name = `n${leaderNode}`;
      expect(await admin('nodes', 'drain', name)).toMatchObject({
        code: 0,
        out: expect.stringContaining('leads nothing'),
      });
      expect((await rangeOf('a')).leaderNode).not.toBe(leaderNode);
      const drained = (await nodes()).find(({ id }) => id === leaderNode);
      expect(drained).toMatchObject({ duty: 'draining', leaders: 0, replicas: 1 });
      expect((await admin('nodes', 'undrain', name)).out).toBe(`${name} takes replicas and leaders again\n`);
    },
    SLOW,
  );

  test(
    'are not in maintenance two at a time, where the ranges need them',
    async () => {
      await quiet();
      expect((await admin('nodes', 'maintenance', 'n1', '--for', '10m')).code).toBe(0);
      expect((await admin('nodes')).out).toMatch(/n1 +up +maintenance for/);
      expect((await admin('nodes', 'maintenance', 'n2')).err).toContain('would lose its quorum while node 2 is away');
      await json('nodes', 'undrain', 'n1');
    },
    SLOW,
  );

  test(
    'are emptied, then removed for good; not below the number of replicas',
    async () => {
      const { id } = await rangeOf('a');
      await json('move', String(id), 'n1', 'n4');
      expect(await admin('nodes', 'decommission', 'n4')).toMatchObject({
        code: 2,
        err: expect.stringContaining('--yes'),
      });
      expect((await admin('nodes', 'remove', 'n4', '--yes')).err).toContain(
        'decommission it, and remove it when it is empty',
      );
      expect(await admin('nodes', 'decommission', 'n4', '--yes')).toMatchObject({
        code: 0,
        out: 'n4 is empty. Stop it, then: remora admin nodes remove n4\n',
      });
      expect(await joinedNode()).toMatchObject({ duty: 'decommissioning', replicas: 0, labels: { zone: 'b' } });
      expect((await admin('nodes', 'decommission', 'n1', '--yes')).err).toContain('add a node first');
      await cluster.node(4).end('SIGTERM');
      expect((await admin('nodes', 'remove', 'n4', '--yes')).out).toBe('n4 is removed\n');
      expect(await joinedNode()).toMatchObject({ duty: 'removed' });
      cluster.node(4).start();
      expect(await cluster.node(4).exit).toMatchObject({ code: 3 });
      await quiet();
    },
    SLOW,
  );
});
