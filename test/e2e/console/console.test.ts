/** The console in a real browser, against a real cluster. What it changes, the command line checks. */
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../../support/needs.ts';
import { jsonHere, runHere } from '../command-line.ts';
import { eventually } from '../eventually.ts';
import { Cluster } from '../harness.ts';
import { missingChromium, startBrowser, Tab } from './browser.ts';

/** Markup, an escape sequence, and a character that reorders its neighbours. */
const HOSTILE = '<img src=x onerror=alert(1)>\u001b[31m\u202egnp.';

const PAGES = ['', 'locks', 'sessions', 'keys', 'ranges', 'heat', 'nodes', 'scheduling', 'settings', 'users', 'audit'];

describeWith(missingChromium, 'the console', () => {
  let cluster: Cluster;
  let browser: Browser;
  let tab: Tab;

  const cli = async (...args: readonly string[]): Promise<string> => {
    const { code, out, err } = await runHere(cluster.endpoints, args);
    if (code !== 0) throw new Error(`exit code ${code}: ${err}`);
    return out;
  };
  const json = (...args: readonly string[]): Promise<unknown> => jsonHere(cluster.endpoints, args);
  const post = async (path: string, body: unknown, method = 'POST'): Promise<Record<string, unknown>> => {
    const headers = { 'content-type': 'application/json' };
    const answer = await fetch(`http://${cluster.node(1).http}${path}`, {
      method,
      headers,
      body: JSON.stringify(body),
    });
    return (await answer.json()) as Record<string, unknown>;
  };
  const acquire = (name: string, more: object = {}) =>
    post(`/v1/locks/default/${encodeURIComponent(name)}/acquire`, {
      ...{ ttl: '10m', token: crypto.randomUUID(), attributes: { host: 'web-7', pid: '4711' } },
      ...more,
    });

  beforeAll(async () => {
    [cluster, browser] = await Promise.all([Cluster.start(), startBrowser()]);
    tab = await Tab.open(browser, cluster.node(1).http);
    await acquire('orders/42', { data: 'shipping' });
    await acquire(HOSTILE, { attributes: { [HOSTILE]: HOSTILE } });
    await cli('kv', 'put', 'orders/42/state', '{"state":"open","__proto__":{"evil":true}}');
    await cli('kv', 'put', `orders/${HOSTILE}`, HOSTILE);
    await cli('kv', 'put', 'gone', 'the last value');
    await cli('kv', 'delete', 'gone');
  });
  afterAll(async () => {
    await browser?.close();
    await cluster?.stop();
  });

  test('every page opens, has a title of its own, and no findings of axe-core in both colours', async () => {
    const dark = await Tab.open(browser, cluster.node(1).http, { colours: 'dark' });
    const titles = new Set<string>();
    const more = ['locks?name=orders%2F42', 'keys?key=orders%2F42%2Fstate', 'ranges?range=2', 'nodes?node=1'];
    for (const each of [tab, dark]) {
      for (const address of [...PAGES, ...more]) {
        await each.go(address);
        await each.loaded();
        titles.add(await each.page.title());
        expect(await each.accessibility(), address).toEqual([]);
      }
    }
    expect(titles.size).toBe(PAGES.length + more.length);
    expect([...tab.faults, ...dark.faults]).toEqual([]);
    await dark.close();
  });

  test('no page has to be scrolled sideways at a width of 390 pixels', async () => {
    const narrow = await Tab.open(browser, cluster.node(1).http, { width: 390 });
    for (const address of [...PAGES, `locks?name=${encodeURIComponent(HOSTILE)}`, 'ranges?range=2', 'nodes?node=2']) {
      await narrow.go(address);
      await narrow.loaded();
      expect(await narrow.tooWide(), address).toBe(false);
    }
    await narrow.close();
  });

  test('keys lead to pages, to the search and to the list of keys', async () => {
    await tab.go('');
    await tab.page.keyboard.press('g');
    await tab.page.keyboard.press('l');
    await tab.page.getByRole('heading', { level: 1, name: 'Locks' }).waitFor();
    await tab.page.keyboard.press('/');
    await tab.page.keyboard.type('orders');
    await tab.page.waitForURL(/search=orders/);
    await tab.page.keyboard.press('Escape');
    await tab.page.keyboard.press('?');
    await tab.page.getByRole('heading', { name: 'Keys' }).waitFor();
    await tab.page.keyboard.press('Escape');
    await tab.page.goBack();
    await tab.page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  });

  test('hostile names, attributes and values are shown as text, with a mark for what is invisible', async () => {
    await tab.go(`locks?name=${encodeURIComponent(HOSTILE)}`);
    await tab.page
      .getByRole('heading', { level: 1, name: '<img src=x onerror=alert(1)>\\e[31m\\u{202e}gnp.' })
      .waitFor();
    await tab.go(`keys?key=${encodeURIComponent(`orders/${HOSTILE}`)}`);
    await tab.page.locator('.value', { hasText: '<img src=x onerror=alert(1)>\\e[31m\\u{202e}gnp.' }).waitFor();
    await tab.go('keys?key=orders%2F42%2Fstate');
    await tab.sees('"__proto__": {');
    expect(await tab.page.locator('img').count()).toBe(0);
    expect(tab.faults).toEqual([]);
  });

  test('a lock shows its holder, since when, and its queue; force release frees it, with a reason', async () => {
    const waiting = acquire('orders/42', { wait: '1m', attributes: { host: 'web-8' } });
    await tab.go('locks');
    await tab.page.getByRole('link', { name: 'orders/42' }).click();
    await tab.sees('web-7');
    await tab.sees('shipping');
    await tab.sees('web-8');
    await tab.picture('console-lock');
    const command = await tab.act(tab.button('Force release'), { Reason: 'its host is gone' }, /was taken/);
    expect(command).toBe("remora lock release --force --reason 'its host is gone' orders/42");
    await waiting;
    await tab.sees('its host is gone');
    await tab.page.locator('.events', { hasText: 'taken by force' }).waitFor();
    expect(await json('lock', 'show', 'orders/42')).toMatchObject({
      holderCount: 1,
      forced: { by: 'console', reason: 'its host is gone' },
    });
  });

  test('locks are searched as one types, and a session is ended', async () => {
    const { session } = await acquire('a/needle/in/a/haystack');
    await tab.go('locks');
    await tab.page.getByRole('searchbox').fill('needle');
    await tab.page.getByRole('link', { name: 'a/needle/in/a/haystack' }).waitFor();
    expect(await tab.page.locator('tbody tr').count()).toBe(1);
    await tab.page
      .locator('tbody')
      .getByRole('link', { name: String(session) })
      .click();
    await tab.page.getByRole('link', { name: 'a/needle/in/a/haystack' }).waitFor();
    await tab.act(tab.button('End session'), {}, 'The session has ended.');
    await eventually('the lock is free', async () => {
      const { holders } = (await json('lock', 'show', 'a/needle/in/a/haystack')) as { readonly holders: unknown[] };
      return holders.length === 0;
    });
  });

  test('a key is created, edited only if nobody else has changed it, watched, and deleted', async () => {
    await tab.go('keys');
    await tab.act(tab.button('New key'), { Key: 'made/here', Value: 'first' }, /was created/);
    await tab.button('Edit').click();
    await cli('kv', 'put', 'made/here', 'by somebody else');
    const dialog = tab.page.locator('dialog[open]');
    await dialog.getByLabel('Value').fill('second');
    await dialog.locator('button[type=submit]').click();
    await dialog.getByText('KEY_CHANGED').waitFor();
    expect(await cli('kv', 'get', 'made/here')).toContain('by somebody else');
    await dialog.getByRole('button', { name: /Compare/ }).click();
    await dialog.locator('.diff-removed', { hasText: 'by somebody else' }).waitFor();
    await dialog.locator('button[type=submit]').click();
    await dialog.waitFor({ state: 'detached' });
    expect(await cli('kv', 'get', 'made/here')).toContain('second');

    await tab.button('Watch live').click();
    await tab.page.locator('.badge', { hasText: 'live' }).waitFor();
    await cli('kv', 'put', 'made/here', 'third');
    await tab.page.locator('.events', { hasText: 'third' }).waitFor();
    await tab.go('keys?key=made%2Fhere');
    await tab.act(tab.button('Delete'), {}, /was deleted/);
    expect((await runHere(cluster.endpoints, ['kv', 'get', 'made/here'])).code).toBe(1);
  });

  test('the value that a key had before it was deleted is two clicks away', async () => {
    await tab.go('keys?key=gone');
    await tab.button('Show its earlier values').click();
    await tab.page.locator('.version', { hasText: 'deleted' }).waitFor();
    await tab.page.locator('.version', { hasText: 'the last value' }).click();
    await tab.page.locator('.value', { hasText: 'the last value' }).waitFor();
  });

  test('keys are exported to a file, and imported from it', async () => {
    await tab.go('keys?prefix=orders%2F');
    const [download] = await Promise.all([tab.page.waitForEvent('download'), tab.button('Export these').click()]);
    const file = await download.path();
    await cli('kv', 'delete', '--prefix', 'orders/');
    await tab.button('Import').click();
    await tab.page.getByLabel('File').setInputFiles(file);
    await tab.page.locator('dialog[open] button[type=submit]').click();
    await tab.page.locator('.toast', { hasText: '2 keys written' }).waitFor();
    expect(await cli('kv', 'get', 'orders/42/state')).toContain('"state":"open"');
  });

  test('a range is split and merged, and its leader is transferred', async () => {
    await tab.go('ranges?range=2');
    await tab.act(tab.button('Split'), { Key: 'orders/' }, /operator/);
    const second = await eventually('there are two ranges', async () => {
      const { ranges } = (await json('admin', 'ranges')) as { readonly ranges: readonly { readonly id: number }[] };
      return ranges.length === 2 && ranges[1]?.id;
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
    await eventually('there is one range', async () => {
      const { ranges } = (await json('admin', 'ranges')) as { readonly ranges: readonly unknown[] };
      return ranges.length === 1;
    });
  });

  test('a node is drained and returns; a scheduler is paused and resumed; a setting is changed', async () => {
    await tab.go('nodes?node=3');
    expect(await tab.act(tab.button('Drain'), {}, /is being drained/)).toBe('remora admin nodes drain n3');
    expect(await json('admin', 'nodes', 'show', 'n3')).toMatchObject({ duty: 'draining' });
    await tab.act(tab.button('Return to service'), {}, /serves again/);
    expect(await json('admin', 'nodes', 'show', 'n3')).toMatchObject({ duty: 'serving' });

    await tab.go('scheduling');
    const row = tab.page.locator('tr', { hasText: 'leader-count' });
    await tab.act(row.getByRole('button', { name: 'Pause' }), { 'For how long': '30m' }, /is paused/);
    expect(await cli('admin', 'schedulers')).toMatch(/leader-count.*paused/);
    await tab.act(row.getByRole('button', { name: 'Resume' }), {}, /runs again/);

    await tab.go('settings');
    const setting = tab.page.locator('tr', { hasText: 'down-after' });
    await tab.act(setting.getByRole('button', { name: 'Change' }), { Value: '7m' }, /down-after is 7m/);
    expect(await cli('admin', 'settings', 'get', 'down-after')).toContain('7m');
    await setting.getByText('changed').waitFor();
    await tab.act(setting.getByRole('button', { name: 'Change' }), { Value: '' }, /at its default/);
  });

  test('when the node that serves the page dies, the page says so, links to the others, and goes on with it', async () => {
    await tab.go('locks?name=orders%2F42');
    await tab.go('');
    await tab.page.locator('tbody tr').nth(2).waitFor();
    await tab.picture('console-overview');
    cluster.kill(1, 'SIGKILL');
    const banner = tab.page.locator('.lost');
    await banner.waitFor();
    const link = banner.getByRole('link', { name: 'n2' });
    expect(await link.getAttribute('href')).toBe(`http://${cluster.node(2).http}/console/`);
    const other = await Tab.open(browser, cluster.node(2).http);
    await other.go('');
    await other.page
      .locator('tr', { hasText: 'n1' })
      .locator('.badge', { hasText: /suspect|down/ })
      .waitFor();
    await other.close();
    await cluster.node(1).end('SIGKILL');
    cluster.node(1).start();
    await cluster.node(1).untilReady();
    await banner.waitFor({ state: 'detached' });
    await tab.page.locator('tr', { hasText: 'n1' }).locator('.badge', { hasText: 'up' }).waitFor();
  });

  test('with authentication on, one logs in, and what the user may not do is refused with a reason', async () => {
    await tab.go('users');
    await tab.act(tab.button('Add user'), { Name: 'root', Password: 'a root password' }, /is there/);
    await tab.act(tab.button('Give role'), { Role: 'root' }, /has the role root/);
    await tab.act(tab.button('Add user'), { Name: 'ann', Password: 'a password of ann' }, /is there/);
    await tab.go('users?show=roles');
    await tab.act(tab.button('Add role'), { Name: 'shop' }, /is there/);
    await tab.go('users?role=shop');
    await tab.page.getByLabel('May').selectOption('lock-read');
    await tab.page.getByLabel('With').selectOption('all');
    await tab.button('Grant').click();
    await tab.page.locator('.toast', { hasText: 'is granted' }).waitFor();
    await cli('auth', 'user', 'grant-role', 'ann', 'shop');
    await cli('auth', 'enable');

    await tab.go('locks');
    await tab.page.getByRole('heading', { name: 'Log in to Remora' }).waitFor();
    expect(await tab.accessibility()).toEqual([]);
    await tab.page.getByLabel('User').fill('ann');
    await tab.page.getByLabel('Password').fill('wrong');
    await tab.button('Log in').click();
    await tab.sees('UNAUTHENTICATED');
    await tab.page.getByLabel('Password').fill('a password of ann');
    await tab.button('Log in').click();
    await tab.page.getByRole('link', { name: 'orders/42' }).waitFor();
    await tab.go('settings');
    await tab.sees('PERMISSION_DENIED');
    expect(await tab.page.evaluate('document.cookie')).toBe('');

    await tab.button('Log out').click();
    await tab.page.getByLabel('User').fill('root');
    await tab.page.getByLabel('Password').fill('a root password');
    await tab.button('Log in').click();
    await tab.page.locator('tr', { hasText: 'down-after' }).waitFor();
    expect(tab.faults).toEqual([]);
  });
});
