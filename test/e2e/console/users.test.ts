/** Users, roles and log-in in the console, checked by the command line; and pages of other sites. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../../support/needs.ts';
import { missingChromium, type Tab } from './browser.ts';
import { ConsoleWorld } from './console-world.ts';

describeWith(missingChromium, 'the console, of users', () => {
  let world: ConsoleWorld;
  let tab: Tab;

  const logIn = async (user: string, password: string): Promise<void> => {
    await tab.page.getByLabel('User').fill(user);
    await tab.page.getByLabel('Password').fill(password);
    await tab.button('Log in').click();
  };

  beforeAll(async () => {
    world = await ConsoleWorld.start();
    tab = world.tab;
    await world.acquire('orders/42');
  });
  afterAll(() => world?.stop());

  test('users and roles are added, changed and deleted', async () => {
    await tab.go('users');
    await tab.act(tab.button('Add user'), { Name: 'root', Password: 'a root password' }, /is there/);
    await tab.act(tab.button('Give role'), { Role: 'root' }, /has the role root/);
    for (const [name, password] of Object.entries({ ann: 'to be changed', bob: 'a password of bob' })) {
      await tab.act(tab.button('Add user'), { Name: name, Password: password }, /is there/);
    }
    await tab.go('users?show=roles');
    await tab.act(tab.button('Add role'), { Name: 'shop' }, /is there/);
    await tab.go('users?role=shop');
    for (const verb of ['lock-read', 'acquire']) {
      await tab.page.getByLabel('May').selectOption(verb);
      await tab.page.getByLabel('With').selectOption('all');
      await tab.button('Grant').click();
      await tab.page.locator('.toast', { hasText: 'is granted' }).last().waitFor();
    }
    await tab.act(tab.button('Revoke').last(), {}, 'The permission is revoked.');

    await tab.go('users');
    const ann = tab.page.locator('tr', { hasText: 'ann' });
    await tab.act(ann.getByRole('button', { name: 'Give role' }), { Role: 'shop' }, /has the role shop/);
    const command = await tab.act(
      ann.getByRole('button', { name: 'Password' }),
      { Password: 'a password of ann' },
      /has a new password/,
    );
    expect(command).toBe('remora auth user passwd ann');
    const bob = tab.page.locator('tr', { hasText: 'bob' });
    await tab.act(bob.getByRole('button', { name: 'Give role' }), { Role: 'shop' }, /bob has the role shop/);
    await tab.act(bob.getByRole('button', { name: 'Take role' }), { Role: 'shop' }, /has no longer the role/);
    await tab.act(bob.getByRole('button', { name: 'Delete' }), { 'Type bob to confirm': 'bob' }, /is deleted/);
    expect(await world.cli('auth', 'user', 'ls')).not.toContain('bob');
    expect(await world.cli('auth', 'user', 'show', 'ann')).toContain('shop');
    expect(tab.faults).toEqual([]);
  });

  test('with authentication on, one logs in, and what the user may not do is refused with a reason', async () => {
    await world.cli('auth', 'enable');
    world.env = { REMORA_USER: 'root', REMORA_PASSWORD: 'a root password' };
    await tab.go('locks');
    await tab.title('Log in to Remora');
    expect(await tab.accessibility()).toEqual([]);
    await logIn('ann', 'wrong');
    await tab.sees('UNAUTHENTICATED');
    await logIn('ann', 'a password of ann');
    await tab.page.getByRole('link', { name: 'orders/42' }).waitFor();
    await tab.go('settings');
    await tab.sees('PERMISSION_DENIED');
    expect(await tab.page.evaluate('document.cookie')).toBe('');

    await tab.button('Log out').click();
    await logIn('root', 'a root password');
    await tab.page.locator('tr', { hasText: 'down-after' }).waitFor();
    await tab.go('audit');
    await tab.page.locator('tr', { hasText: 'logIn' }).first().waitFor();
    await tab.picture('console-audit');
    expect(await tab.accessibility()).toEqual([]);
    expect(tab.faults).toEqual([]);
  });

  test('a page of another site changes nothing with the log-in of its visitor, and cannot show the console', async () => {
    const node = `http://${world.cluster.node(1).http}`;
    const site = await serve(`<!doctype html><iframe name="inside"></iframe>
      <form method="post" action="${node}/v1/kv/forged" enctype="text/plain"><input name='{"value":"x","a":"' value='"}'></form>
      <img src="${node}/v1/kv/forged?value=x">`);
    try {
      const page = await tab.page.context().newPage();
      await page.goto(`http://localhost:${(site.address() as AddressInfo).port}/`);
      const outcomes = await page.evaluate<string[]>(`Promise.all([
        ['PUT', {}], ['POST', {}], ['PUT', { 'content-type': 'application/json', 'x-remora-csrf': '1' }], ['GET', {}],
      ].map(([method, headers]) =>
        fetch('${node}/v1/kv/forged', { method, headers, credentials: 'include', body: method === 'GET' ? undefined : '{"value":"x"}' })
          .then(async (answer) => 'read ' + (await answer.text()), () => 'refused')))`);
      expect(outcomes).toEqual(Array(4).fill('refused'));
      await page.evaluate(`document.querySelector('form').target = 'inside'; document.querySelector('form').submit()`);
      await page.evaluate(
        `fetch('${node}/v1/kv/forged', { method: 'POST', mode: 'no-cors', credentials: 'include', body: '{"value":"x"}' })`,
      );
      await page.evaluate(`new Promise((resolve) => {
        const frame = document.createElement('iframe');
        frame.onload = resolve;
        frame.src = '${node}/console/';
        document.body.append(frame);
      })`);
      const frames = page.frames().filter((frame) => frame.url().includes('/console/'));
      for (const frame of frames) expect(await frame.locator('#app').count()).toBe(0);
      expect(await world.cli('kv', 'get', '--prefix', '', '--keys-only')).not.toContain('forged');
      await page.close();
    } finally {
      site.close();
    }
  });
});

function serve(html: string): Promise<Server> {
  const server = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end(html);
  });
  return new Promise((resolve) => server.listen(0, 'localhost', () => resolve(server)));
}
