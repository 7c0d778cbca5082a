/** What the console does with ranges and nodes, checked by the command line; and what it shows while nodes die. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../../support/needs.ts';
import { eventually } from '../eventually.ts';
import { missingChromium, Tab } from './browser.ts';
import { ConsoleWorld } from './console-world.ts';

interface Range {
  readonly id: number;
  readonly replicas: readonly { readonly id: number; readonly nodeId: number; readonly type: string }[];
}

interface Node {
  readonly name: string;
  readonly duty: string;
}

const isVoter = ({ type }: Range['replicas'][number]): boolean => type === 'voter';

describeWith(missingChromium, 'the console, of ranges and nodes', () => {
  let world: ConsoleWorld;
  let tab: Tab;
  /** The id of n4, which is no founding member. */
  let joined: number;

  const nameOf = (node: number): string => (node === joined ? 'n4' : `n${node}`);
  const ranges = async (): Promise<readonly Range[]> =>
    (await world.json<{ readonly ranges: readonly Range[] }>('admin', 'ranges')).ranges;
  const replicas = async (): Promise<Range['replicas']> => (await ranges())[0]?.replicas ?? [];
  const replicaOn = async (node: number): Promise<number | undefined> =>
    (await replicas()).find(({ nodeId }) => nodeId === node)?.id;
  const duty = async (name: string): Promise<unknown> => (await world.json('admin', 'nodes', 'show', name)).duty;

  beforeAll(async () => {
    world = await ConsoleWorld.start({ joining: 1 });
    tab = world.tab;
    joined = (await world.json<{ readonly id: number }>('admin', 'nodes', 'show', 'n4')).id;
    // They would move what the tests have moved.
    for (const name of ['replica-count', 'leader-count']) {
      await world.cli('admin', 'schedulers', 'pause', name, '--for', '1h');
    }
  });
  afterAll(() => world?.stop());

  test('a range is split and merged, and its leader is transferred', async () => {
    await world.cli('kv', 'put', 'orders/1', 'x');
    await tab.go('ranges?range=2');
    await tab.act(tab.button('Split'), { Key: 'orders/' }, /operator/);
    const second = await eventually('there are two ranges', async () => {
      const all = await ranges();
      return all.length === 2 && all[1]?.id;
    });
    await tab.go('ranges');
    await tab.page.getByRole('link', { name: String(second), exact: true }).waitFor();
    await tab.picture('console-ranges');
    await tab.go('ranges?range=2');
    const options = tab.page.locator('dialog[open] select option');
    await tab.button('Transfer leader').click();
    const to = (await options.first().textContent()) ?? '';
    await tab.page.locator('dialog[open]').getByRole('button', { name: 'Cancel' }).click();
    await tab.act(tab.button('Transfer leader'), { 'Node that leads afterwards': to }, `${to} leads range 2`);
    const command = await tab.act(tab.button('Merge'), {}, /operator/);
    expect(command).toBe(`remora admin merge 2 ${second}`);
    await eventually('there is one range', async () => (await ranges()).length === 1);
  });

  test('a replica is moved to another node, not added where there are enough, and removed', async () => {
    await tab.go('ranges?range=2');
    const before = (await replicas()).map(({ nodeId }) => nodeId);
    const lacking = [1, 2, 3, joined].find((node) => !before.includes(node)) ?? 0;
    const { leaderNode } = await world.get<{ readonly leaderNode: number }>('/v1/cluster/ranges/2');
    const from = before.find((node) => node !== leaderNode) ?? 0;
    const nothingRuns = (): Promise<unknown> =>
      eventually('no operator runs', async () => (await world.cli('admin', 'operators')).includes('no operator'));
    await tab.act(tab.button('Move'), { From: nameOf(from), To: nameOf(lacking) }, /operator/);
    await nothingRuns();
    const after = [...before.filter((node) => node !== from), lacking];
    expect((await replicas()).map(({ nodeId }) => nodeId)).toEqual(expect.arrayContaining(after));
    await tab.go('ranges?range=2');
    await tab.button('Add replica').click();
    const dialog = tab.page.locator('dialog[open]');
    await dialog.locator('button[type=submit]').click();
    await dialog.getByText('raise the setting "replicas"').waitFor();
    await dialog.getByRole('button', { name: 'Cancel' }).click();
    const removed = await replicaOn(lacking);
    await tab.act(tab.button('Remove replica'), { 'From node': nameOf(lacking) }, /operator/);
    await eventually('the replica is removed', async () => (await replicaOn(lacking)) !== removed);
    await eventually('it is replaced', async () => (await replicas()).filter(isVoter).length === 3);
    await nothingRuns();
  });

  test('a node is drained, prepared for a restart, emptied, and returns; its log level is changed', async () => {
    await tab.go('nodes?node=3');
    expect(await tab.act(tab.button('Drain'), {}, /is being drained/)).toBe('remora admin nodes drain n3');
    expect(await duty('n3')).toBe('draining');
    await tab.act(tab.button('Return to service'), {}, /serves again/);
    expect(await duty('n3')).toBe('serving');
    await tab.act(tab.button('Maintenance'), { 'For how long': '30m' }, /is in maintenance for 30m/);
    expect(await duty('n3')).toBe('maintenance');
    await tab.act(tab.button('Return to service'), {}, /serves again/);
    await tab.act(tab.button('Decommission'), { 'Type n3 to confirm': 'n3' }, /is being emptied/);
    expect(await duty('n3')).toBe('decommissioning');
    await tab.act(tab.button('Return to service'), {}, /serves again/);
    await tab.act(tab.button('Log level'), { 'Lowest level that is logged': 'debug' }, /logs debug and above/);
    expect(await world.cli('admin', 'log-level', 'n3', 'info')).toContain('debug');
  });

  test('a scheduler is paused and resumed; all run on request; a setting is changed', async () => {
    await tab.go('scheduling');
    await tab.picture('console-scheduling');
    const row = tab.page.locator('tr', { hasText: 'leader-load' });
    await tab.act(row.getByRole('button', { name: 'Pause' }), { 'For how long': '30m' }, /is paused/);
    expect(await world.cli('admin', 'schedulers')).toMatch(/leader-load.*paused/);
    await tab.act(row.getByRole('button', { name: 'Resume' }), {}, /runs again/);
    expect(await world.cli('admin', 'schedulers')).not.toMatch(/leader-load.*paused/);
    await tab.act(tab.button('Rebalance'), {}, /started/);

    await tab.go('settings');
    const setting = tab.page.locator('tr', { hasText: 'down-after' });
    await tab.act(setting.getByRole('button', { name: 'Change' }), { Value: '7m' }, /down-after is 7m/);
    expect(await world.cli('admin', 'settings', 'get', 'down-after')).toContain('7m');
    await setting.getByText('changed').waitFor();
    await tab.act(setting.getByRole('button', { name: 'Change' }), { Value: '' }, /at its default/);
    expect(await world.cli('admin', 'settings', 'get', 'down-after')).not.toContain('7m');
    expect(tab.faults).toEqual([]);
  });

  test('a leader that dies is shown as down, and the page goes on', async () => {
    const leader = await world.cluster.leader();
    const serving = leader === 1 ? 2 : 1;
    const other = await Tab.open(world.browser, world.cluster.node(serving).http);
    await other.go('');
    await other.page.locator('tbody tr').nth(2).waitFor();
    world.cluster.kill(leader, 'SIGKILL');
    const row = other.page.locator('tr', { hasText: `n${leader}` });
    await row.locator('.badge', { hasText: /suspect|down/ }).waitFor();
    expect(await other.page.locator('.lost').count()).toBe(0);
    await other.go('keys');
    await other.act(other.button('New key'), { Key: 'after/the/leader', Value: 'x' }, /was created/);
    await world.cluster.node(leader).end('SIGKILL');
    world.cluster.node(leader).start();
    await world.cluster.node(leader).untilReady();
    await other.go('');
    await row.locator('.badge', { hasText: 'up' }).waitFor();
    await other.close();
  });

  test('when the node that serves the page dies, the page says so, links to the others, and goes on with it', async () => {
    await tab.go('');
    await tab.page.locator('tbody tr').nth(2).waitFor();
    world.cluster.kill(1, 'SIGKILL');
    const banner = tab.page.locator('.lost');
    await banner.waitFor();
    const link = banner.getByRole('link', { name: 'n2' });
    expect(await link.getAttribute('href')).toBe(`http://${world.cluster.node(2).http}/console/`);
    await tab.picture('console-lost');
    await world.cluster.node(1).end('SIGKILL');
    world.cluster.node(1).start();
    await world.cluster.node(1).untilReady();
    await banner.waitFor({ state: 'detached' });
    await tab.page.locator('tr', { hasText: 'n1' }).locator('.badge', { hasText: 'up' }).waitFor();
  });

  test('a node that is gone is removed', async () => {
    await world.cluster.node(4).end('SIGTERM');
    await tab.go(`nodes?node=${joined}`);
    await tab.act(tab.button('Remove'), { 'Type n4 to confirm': 'n4' }, /is removed/);
    await eventually('it is no node of the cluster any more', async () => {
      const { nodes } = await world.json<{ readonly nodes: readonly Node[] }>('admin', 'nodes');
      return nodes.every(({ name, duty: its }) => name !== 'n4' || its === 'removed');
    });
  });
});
