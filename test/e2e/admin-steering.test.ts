/** `remora admin` as operators steer a cluster with it: three nodes that founded it, and one that joined. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { jsonHere, runHere } from './command-line.ts';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';

const SLOW = 300_000;
/** For one thing of a test. */
const PATIENCE = 60_000;

let cluster: Cluster;
beforeAll(async () => {
  // An election of the masters ends operators. A busy machine must not cause one: no test here is about it.
  cluster = await Cluster.start({ flags: { 'election-timeout': '3s' } });
  // What balances the cluster would move ranges to the new node, and while a test looks.
  await json('schedulers', 'pause', 'all', '--for', '1h');
  const joining = await cluster.addJoining({ labels: 'room=7' });
  joining.start();
  await joining.untilReady();
}, SLOW);
afterAll(() => cluster.stop());

const kv = (...args: readonly string[]) => runHere(cluster.endpoints, ['kv', ...args]);
/** On a busy machine the masters may be without a leader for longer than commands wait by default. */
const PATIENT = ['--timeout', '1m'];
const admin = (...args: readonly string[]) => runHere(cluster.endpoints, ['admin', ...args, ...PATIENT]);
const json = (...args: readonly string[]) => jsonHere(cluster.endpoints, ['admin', ...args, ...PATIENT]);

/** What a command prints, with what it says meanwhile; throws when it fails. */
async function followed(...args: readonly string[]): Promise<{ readonly out: string; readonly err: string }> {
  const { code, out, err } = await admin(...args);
  if (code !== 0) throw new Error(`remora admin ${args.join(' ')} ended with ${code}:\n${err}`);
  return { out, err };
}

const done = async (...args: readonly string[]): Promise<string> => (await followed(...args)).out;

/** What a command says that is refused. */
async function refused(...args: readonly string[]): Promise<string> {
  const { code, out, err } = await admin(...args);
  if (code === 0) throw new Error(`remora admin ${args.join(' ')} was not refused:\n${out}`);
  return err;
}

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
  readonly start: { readonly text: string } | null;
  readonly end: { readonly text: string } | null;
  readonly leaderNode: number;
  readonly replicas: readonly { readonly nodeId: number; readonly type: string; readonly state: string }[];
}

interface OperatorsJson {
  readonly operators: readonly { readonly id: number; readonly status: string; readonly reason: string }[];
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

/** Waits until nothing is wrong; what is, is the cause of the time-out. */
function quiet(): Promise<string> {
  const look = async (): Promise<string> => {
    const { code, out } = await admin('check');
    if (code !== 0) throw new Error(out);
    return out;
  };
  return eventually('nothing is wrong', look, { timeoutMs: PATIENCE });
}

describe('ranges', () => {
  test('are split at a key, and not twice, nor where the key is not', async () => {
    for (const key of ['a', 'm', 'z']) await kv('put', key, `value of ${key}`);
    const [whole] = await ranges();
    const split = await admin('split', '--key', 'm');
    expect(split).toMatchObject({ code: 0, out: `split range ${whole?.id} at key:m\n` });
    const [left, right] = await eventually('both are known', async () => {
      const found = await ranges();
      return found.length === 2 ? found : undefined;
    });
    expect([(await rangeOf('lz')).id, (await rangeOf('m')).id]).toEqual([left?.id, right?.id]);
    expect(await admin('split', '--key', '0x6d')).toMatchObject({
      code: 1,
      err: `remora: range ${right?.id} already starts at key:m; choose a later key\n`,
    });
    expect(await refused('split', String(left?.id), '--key', 'z')).toContain(
      `key:z is not in range ${left?.id} (from - to key:m); range ${right?.id} contains it`,
    );
    expect(await refused('split', String(left?.id), '--key', 'm')).toContain(`range ${right?.id} contains it`);
    expect(await refused('split', '77')).toContain('unknown range 77');
    expect(await refused('split', '--key', '0x6')).toContain('expected pairs of hex digits');
    for (const key of ['a', 'm', 'z']) expect((await kv('get', key)).out).toBe(`value of ${key}`);
  });

  test(
    'are split where a lock lies, by its name, in the form in which its bound is printed',
    async () => {
      const { id } = await rangeOf('lock:orders/');
      await kv('put', 'lock:orders/', 'a plain key');
      expect(await done('split', '--key', 'lock:orders/')).toBe(`split range ${id} at lock:orders/\n`);
      const found = await eventually('it is known', async () => {
        const both = [await rangeOf('lock:orders/'), await rangeOf('lock:a')];
        return both[0]?.id === both[1]?.id ? undefined : both;
      });
      const [behind, before] = found;
      expect([behind?.start?.text, before?.end?.text, before?.id]).toEqual(['lock:orders/', 'lock:orders/', id]);
      expect((await admin('ranges')).out).toContain(' lock:orders/ ');
      // The plain key of that name was not what it was split at.
      expect((await rangeOf('key:lock:orders/')).id).toBe((await rangeOf('a')).id);
      expect(await refused('split', '--key', 'lock:orders/')).toContain('already starts at lock:orders/');
      expect(await refused('split', '--key', 'lease:5')).toContain('for a plain key, write key:lease:5');
      await done('merge', String(before?.id), String(behind?.id));
    },
    SLOW,
  );

  test(
    'merge neighbours that are on the same nodes, whichever is named first',
    async () => {
      const [left, right] = [await rangeOf('a'), await rangeOf('m')];
      const merged = `merged range ${right.id} into range ${left.id}\n`;
      expect(await done('merge', String(right.id), String(left.id))).toBe(merged);
      expect(await ranges()).toMatchObject([{ id: left.id }]);
      expect(await refused('why', String(right.id))).toContain(`was merged into range ${left.id}`);
      for (const key of ['a', 'm', 'z']) expect((await kv('get', key)).out).toBe(`value of ${key}`);
      await done('split', '--key', 'm');
    },
    SLOW,
  );

  test(
    'have one operator for all who want the same; one that hangs is cancelled, and leaves nothing behind',
    async () => {
      const { id } = await rangeOf('m');
      const before = nodesOf(await rangeOf('m'));
      await json('settings', 'set', 'suspect-after', '5m'); // so that it is not given up as soon as the node is missed
      cluster.kill(4, 'SIGSTOP');
      const move = ['move', String(id), 'n1', 'n4', '--no-wait'];
      const [one, other] = (await Promise.all([json(...move), json(...move)])) as readonly { id: number }[];
      expect(one?.id).toBe(other?.id);
      const operator = String(one?.id);
      await eventually('the learner is there', async () => (await rangeOf('m')).replicas.length === 4);
      expect(await done('operators', 'ls')).toMatch(new RegExp(`^${operator} +${id} +admin .*requested: move`, 'm'));
      expect(await done('why', String(id))).toContain(`operator ${operator} (admin) is running, step`);
      expect(await refused('merge', String((await rangeOf('a')).id), String(id))).toMatch(
        /changing|is running|on other/,
      );
      expect(await done('operators', 'cancel', operator)).toMatch(
        new RegExp(`^cancelled operator ${operator} \\(`, 'm'),
      );
      cluster.kill(4, 'SIGCONT');
      await json('settings', 'reset', 'suspect-after');
      await quiet();
      expect(nodesOf(await rangeOf('m'))).toEqual(before);
    },
    SLOW,
  );

  test(
    'move to another node, step by step, with all that is in them',
    async () => {
      const { id } = await rangeOf('m');
      const moved = await followed('move', String(id), 'n1', 'n4');
      expect(moved.out).toBe(`moved the replica of range ${id} from n1 to n4\n`);
      // It is asked from time to time, so a step that is over soon may not be seen. One that leads hands over, too.
      expect(moved.err).toMatch(/^operator \d+: step [123] of [23]: /m);
      expect(nodesOf(await rangeOf('m'))).toEqual([2, 3, (await joinedNode()).id]);
      expect((await kv('get', 'z')).out).toBe('value of z');
      const { operators } = (await json('operators', 'history', '--range', String(id))) as OperatorsJson;
      expect(operators[0]).toMatchObject({ status: 'success', reason: expect.stringContaining('move from node 1') });
    },
    SLOW,
  );

  test('do not move where that is not possible: the refusal says what would be right', async () => {
    const { id } = await rangeOf('m');
    expect(await refused('move', String(id), 'n2', 'n4')).toContain('already has a replica; node 1 can receive it');
    expect(await refused('move', String(id), 'n1', 'n4')).toContain(
      'has no voter on node 1; its voters are on nodes 2, 3',
    );
    expect(await refused('move', String(id), 'n1', 'n9')).toContain('there is no node n9; there are n1 (1)');
    expect(await refused('add-replica', String(id), 'n1')).toContain('has 3 of 3 replicas; move one');
    expect(await refused('merge', String(id), String(id))).toContain('only adjacent ranges can be merged');
    expect(await refused('merge', String((await rangeOf('a')).id), String(id))).toContain('is on other nodes');
    expect(await admin('remove-replica', String(id), 'n2')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--yes'),
    });
  });

  test('say why nothing happens to them', async () => {
    const { id } = await rangeOf('a');
    expect(await done('why', String(id))).toContain('it has no problems');
    expect(await done('why', 'n4')).toMatch(/^it has 1 replica and leads [01]$/m);
    expect(await refused('why', '77')).toContain('unknown range 77');
  });
});

describe('operators and schedulers', () => {
  test(
    'of two who want different things of one range, the second one learns what is under way',
    async () => {
      const { id } = await rangeOf('a');
      const { id: operator } = (await json('move', String(id), 'n1', 'n4', '--no-wait')) as { id: number };
      expect(await refused('move', String(id), 'n2', 'n4')).toMatch(
        new RegExp(`operator ${operator} is running|already has a replica|changing`),
      );
      const look = async (): Promise<string | undefined> => {
        const { operators } = (await json('operators', 'history')) as OperatorsJson;
        return operators.find((each) => each.id === operator)?.status;
      };
      const status = await eventually('the first one has ended', look, { timeoutMs: PATIENCE });
      expect(status).toBe('success');
      expect(await refused('operators', 'cancel', String(operator))).toContain('has already ended as success');
    },
    SLOW,
  );

  test('rest and run as they are told', async () => {
    const { schedulers } = (await json('schedulers')) as { schedulers: readonly { name: string; pausedMs: number }[] };
    expect(schedulers.length).toBeGreaterThan(3);
    expect(schedulers.every(({ pausedMs }) => pausedMs > 0)).toBe(true);
    expect(await done('schedulers', 'resume', 'leader-count')).toMatch(/^leader-count +runs/m);
    expect(await refused('schedulers', 'pause', 'leader-cout')).toContain('did you mean leader-count?');
    expect(await refused('schedulers', 'set', 'bytes', 'load-gap-min', '7')).toContain('it uses bytes-');
    expect(await done('schedulers', 'set', 'bytes', 'bytes-tolerance-percent', '15')).toContain('= 15\n');
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
      expect(await done('nodes', 'drain', name)).toBe(`${name} leads nothing; its replicas stay\n`);
      expect((await rangeOf('a')).leaderNode).not.toBe(leaderNode);
      const drained = (await nodes()).find(({ id }) => id === leaderNode);
      expect(drained).toMatchObject({ duty: 'draining', leaders: 0 });
      expect(drained?.replicas).toBeGreaterThan(0);
      expect(await done('nodes', 'undrain', name)).toBe(`${name} accepts replicas and leaders again\n`);
    },
    SLOW,
  );

  test(
    'are not in maintenance two at a time, where the ranges need them',
    async () => {
      await quiet();
      expect(await done('nodes', 'maintenance', 'n2', '--for', '10m')).toBe('n2 leads nothing; you can stop it now\n');
      expect(await done('nodes')).toMatch(/n2 +up +maintenance for/);
      expect(await refused('nodes', 'maintenance', 'n3')).toContain('would lose its quorum while node 3 is down');
      await json('nodes', 'undrain', 'n2');
    },
    SLOW,
  );

  test(
    'are emptied, then removed for good; not below the number of replicas',
    async () => {
      expect(await admin('nodes', 'decommission', 'n4')).toMatchObject({
        code: 2,
        err: expect.stringContaining('--yes'),
      });
      expect(await refused('nodes', 'remove', 'n4', '--yes')).toContain(
        'decommission it, and remove it when it is empty',
      );
      const emptied = 'n4 is empty. Stop it, then: remora admin nodes remove n4\n';
      expect(await done('nodes', 'decommission', 'n4', '--yes')).toBe(emptied);
      expect(await joinedNode()).toMatchObject({ duty: 'decommissioning', replicas: 0, labels: { room: '7' } });
      expect(await refused('nodes', 'decommission', 'n1', '--yes')).toContain('add a node first');
      await json('settings', 'set', 'suspect-after', '1s');
      await cluster.node(4).end('SIGTERM');
      await eventually('it is missed', async () => (await joinedNode()).state !== 'up');
      const { id } = await rangeOf('a');
      expect(await refused('move', String(id), 'n1', 'n4')).toMatch(/is decommissioning|is suspect|is down/);
      expect(await done('nodes', 'remove', 'n4', '--yes')).toBe('n4 was removed\n');
      expect(await joinedNode()).toMatchObject({ duty: 'removed' });
      cluster.node(4).start();
      expect(await cluster.node(4).exit).toMatchObject({ code: 3 });
      await quiet();
    },
    SLOW,
  );

  test(
    'that are missed take nothing, and nothing is taken away that keeps a quorum',
    async () => {
      const range = await rangeOf('a');
      const dead = range.leaderNode === 3 ? 2 : 3;
      const lives = [1, 2, 3].find((n) => n !== dead && n !== range.leaderNode);
      await cluster.node(dead).end('SIGKILL');
      await eventually('it is missed', async () => (await nodes()).find(({ id }) => id === dead)?.state === 'suspect');
      expect(await refused('remove-replica', String(range.id), `n${lives}`, '--yes')).toContain(
        'would lose its quorum',
      );
      expect(await refused('nodes', 'maintenance', `n${lives}`)).toContain('would lose its quorum while node');
      // The dead node may have led the masters: their new leader waits a while before it calls a node silent (check.ts
      // CK1).
      const silent = async () => {
        const { out } = await admin('check');
        return /silentNode/.test(out) ? out : undefined;
      };
      const out = await eventually('its silence is reported', silent, { timeoutMs: PATIENCE });
      expect(out).not.toMatch(/misplaced/);
    },
    SLOW,
  );
});
