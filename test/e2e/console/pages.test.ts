/** Every page of the console in a real browser, against a real cluster under load. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../../support/needs.ts';
import { missingChromium, Tab } from './browser.ts';
import { ConsoleWorld, HOSTILE, HOSTILE_SHOWN } from './console-world.ts';

const PAGES = ['', 'locks', 'sessions', 'keys', 'ranges', 'heat', 'nodes', 'scheduling', 'settings', 'users', 'audit'];
const DETAILS = ['locks?name=orders%2F42', 'keys?key=orders%2F42%2Fstate', 'ranges?range=2', 'nodes?node=1'];
const ADDRESSES = [...PAGES, ...DETAILS];
const HOSTILE_LOCK = `locks?name=${encodeURIComponent(HOSTILE)}`;

describeWith(missingChromium, 'the pages of the console', () => {
  let world: ConsoleWorld;
  let tab: Tab;
  let endLoad: () => Promise<void>;

  beforeAll(async () => {
    world = await ConsoleWorld.start();
    tab = world.tab;
    await world.acquire('orders/42', { data: 'shipping' });
    await world.acquire(HOSTILE, { attributes: { [HOSTILE]: HOSTILE } });
    await world.cli('kv', 'put', 'orders/42/state', '{"state":"open","__proto__":{"evil":true}}');
    await world.cli('kv', 'put', `orders/${HOSTILE}`, HOSTILE);
    endLoad = world.load();
  });
  afterAll(async () => {
    await endLoad?.();
    await world?.stop();
  });

  test.each(['light', 'dark'] as const)(
    'open in %s colours with a title each and no findings of axe-core',
    async (colours) => {
      const other = await Tab.open(world.browser, world.cluster.node(2).http, { colours });
      const titles = new Set<string>();
      for (const address of ADDRESSES) {
        await other.go(address);
        await other.loaded();
        titles.add(await other.page.title());
        expect(await other.accessibility(), address).toEqual([]);
      }
      expect(titles.size).toBe(ADDRESSES.length);
      expect(other.faults).toEqual([]);
      await other.close();
    },
  );

  test('are never wider than a window of 390 pixels', async () => {
    const narrow = await Tab.open(world.browser, world.cluster.node(1).http, { width: 390 });
    for (const address of [...ADDRESSES, HOSTILE_LOCK]) {
      await narrow.go(address);
      await narrow.loaded();
      expect(await narrow.tooWide(), address).toBe(false);
    }
    await narrow.go('');
    await narrow.page.getByRole('button', { name: 'Navigation' }).click();
    await narrow.page.getByRole('navigation').getByRole('link', { name: 'Locks' }).click();
    await narrow.title('Locks');
    await narrow.picture('console-narrow');
    await narrow.close();
  });

  test('are reached by keys, and an action is taken without a mouse', async () => {
    const { keyboard } = tab.page;
    await tab.go('');
    await tab.loaded();
    await tab.picture('console-overview');
    for (const key of ['g', 'l']) await keyboard.press(key);
    await tab.title('Locks');
    await keyboard.press('/');
    await keyboard.type('orders');
    await tab.page.waitForURL(/search=orders/);
    await keyboard.press('Escape');
    await keyboard.press('?');
    await tab.page.getByRole('heading', { name: 'Keyboard shortcuts' }).waitFor();
    await keyboard.press('Escape');
    await tab.page.goBack();
    await tab.title('Overview');

    await tab.go('keys');
    await tab.button('New key').focus();
    await keyboard.press('Enter');
    await tab.page.locator('dialog[open]').waitFor();
    await keyboard.type('by/keyboard');
    await keyboard.press('Tab');
    await keyboard.type('typed');
    await tab.page.locator('dialog[open] button[type=submit]').focus();
    await keyboard.press('Enter');
    await tab.page.locator('.toast', { hasText: 'was created' }).waitFor();
    expect(await world.cli('kv', 'get', 'by/keyboard')).toContain('typed');
  });

  test('show hostile names, attributes and values as text, with a mark for what is invisible', async () => {
    await tab.go(HOSTILE_LOCK);
    await tab.title(HOSTILE_SHOWN);
    await tab.go('locks');
    await tab.page.getByRole('link', { name: HOSTILE_SHOWN }).waitFor();
    await tab.go(`keys?key=${encodeURIComponent(`orders/${HOSTILE}`)}`);
    await tab.page.locator('.value', { hasText: HOSTILE_SHOWN }).waitFor();
    await tab.go('keys?key=orders%2F42%2Fstate');
    await tab.sees('"__proto__": {');
    expect(await tab.page.locator('img').count()).toBe(0);
    expect(tab.faults).toEqual([]);
  });

  test('show the beginning of a value of 1 MiB, and stay usable', async () => {
    const value = `${'<b>line</b>\n'.repeat(87_000)}`.slice(0, (1 << 20) - 100);
    await world.cli('kv', 'put', 'large', value);
    await tab.go('keys?key=large');
    await tab.page.locator('.value', { hasText: '<b>line</b>' }).waitFor();
    expect(await tab.page.locator('.value b').count()).toBe(0);
    await tab.page.getByRole('navigation').getByRole('link', { name: 'Locks' }).click();
    await tab.title('Locks');
    expect(tab.faults).toEqual([]);
  });

  test('run no script and load nothing but what the node serves', async () => {
    await tab.go('');
    const blocked = tab.page.evaluate<string[]>(`new Promise((resolve) => {
      const seen = [];
      addEventListener('securitypolicyviolation', ({ effectiveDirective }) => {
        if (seen.push(effectiveDirective) === 3) resolve(seen.sort());
      });
      const script = document.createElement('script');
      script.textContent = 'window.ran = true';
      const image = document.createElement('img');
      image.src = 'http://127.0.0.2/x.png';
      document.body.append(script, image);
      fetch('http://127.0.0.2/').catch(() => {});
    })`);
    expect(await blocked).toEqual(['connect-src', 'img-src', 'script-src-elem']);
    expect(await tab.page.evaluate('window.ran')).toBeUndefined();
    tab.forgetFaults();
  });

  test('name what is not there', async () => {
    await tab.go('no-such-page');
    await tab.sees('There is no page at this address.');
    await tab.go('ranges?range=99');
    await tab.sees('99');
    expect(tab.faults).toEqual([]);
  });
});
