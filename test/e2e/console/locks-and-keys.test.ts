/** What the console does with locks, sessions and keys, checked by the command line. */
import { connect, type RevocationRequest } from 'remora';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { describeWith } from '../../support/needs.ts';
import { runHere } from '../command-line.ts';
import { eventually } from '../eventually.ts';
import { missingChromium, type Tab } from './browser.ts';
import { ConsoleWorld } from './console-world.ts';

describeWith(missingChromium, 'the console, of locks and keys', () => {
  let world: ConsoleWorld;
  let tab: Tab;

  beforeAll(async () => {
    world = await ConsoleWorld.start();
    tab = world.tab;
  });
  afterAll(() => world?.stop());

  test('a lock shows its holder, since when, and its queue; force release frees it, with a reason', async () => {
    await world.acquire('orders/42', { data: 'shipping' });
    const waiting = world.acquire('orders/42', { wait: '1m', attributes: { host: 'web-8' } });
    await tab.go('locks');
    await tab.page.getByRole('link', { name: 'orders/42' }).click();
    for (const text of ['web-7', 'shipping', 'web-8']) await tab.sees(text);
    await tab.picture('console-lock');
    const command = await tab.act(tab.button('Force release'), { Reason: 'its host is gone' }, /was taken/);
    const [, version] =
      /^remora lock release --force --up-to-version (\d+) --reason 'its host is gone' orders\/42$/.exec(command) ?? [];
    expect(Number(version)).toBeGreaterThan(0);
    await waiting;
    await tab.sees('its host is gone');
    await tab.page.locator('.events', { hasText: 'taken by force' }).waitFor();
    expect(await world.json('lock', 'show', 'orders/42')).toMatchObject({
      holderCount: 1,
      forced: { by: 'console', reason: 'its host is gone' },
    });
    await tab.act(tab.button('Forget'), {}, 'is deleted');
    expect(await world.json('lock', 'show', 'orders/42')).not.toHaveProperty('forced');
  });

  test('the holder of a lock is asked to release it', async () => {
    await using client = await connect({ endpoints: world.cluster.endpoints });
    const asked: RevocationRequest[] = [];
    await using held = await client.lock('asked').acquire({ onRevoke: (request) => void asked.push(request) });
    await tab.go('locks?name=asked');
    const command = await tab.act(tab.button('Revoke'), { Reason: 'a restart' }, /are asked/);
    expect(command).toBe("remora lock revoke --wait 30s --reason 'a restart' asked");
    await eventually('the holder knows', () => asked.length > 0);
    expect(asked[0]).toMatchObject({ by: 'console', reason: 'a restart' });
    expect(held.state).toBe('active');
  });

  test('the capacity of a semaphore is set', async () => {
    await world.acquire('permits', { permits: 1, capacity: 2 });
    await tab.go('locks?name=permits');
    await tab.act(tab.button('Set capacity'), { Permits: '5' }, 'The capacity is 5.');
    expect(await world.json('lock', 'show', 'permits')).toMatchObject({ capacity: 5 });
  });

  test('locks are found as one types, and a session is ended', async () => {
    const name = 'a/needle/in/a/haystack';
    const { session } = await world.acquire(name);
    await tab.go('locks');
    await tab.page.getByRole('searchbox').fill('needle');
    await eventually('one lock is left', async () => (await tab.page.locator('tbody tr').count()) === 1);
    await tab.page.keyboard.press('Enter');
    await tab.page.waitForURL(/name=a(%2F|\/)needle/);
    await tab.page.goBack();
    await tab.page.getByRole('link', { name }).waitFor();
    await tab.page
      .locator('tbody')
      .getByRole('link', { name: String(session) })
      .click();
    await tab.page.getByRole('link', { name }).waitFor();
    await tab.act(tab.button('End session'), {}, 'The session has ended.');
    await eventually('the lock is free', async () => {
      const state = await world.json<{ readonly holderCount: number } | null>('lock', 'show', name);
      return state === null || state.holderCount === 0;
    });
  });

  test('a key is created, edited only if nobody else has changed it, watched, and deleted', async () => {
    await tab.go('keys');
    await tab.act(tab.button('New key'), { Key: 'made/here', Value: 'first' }, /was created/);
    await tab.button('Edit').click();
    await world.cli('kv', 'put', 'made/here', 'by somebody else');
    const dialog = tab.page.locator('dialog[open]');
    await dialog.getByLabel('Value').fill('second');
    await dialog.locator('button[type=submit]').click();
    await dialog.getByText('KEY_CHANGED').waitFor();
    expect(await world.cli('kv', 'get', 'made/here')).toContain('by somebody else');
    await dialog.getByRole('button', { name: /Compare/ }).click();
    await dialog.locator('.diff-removed', { hasText: 'by somebody else' }).waitFor();
    await dialog.locator('button[type=submit]').click();
    await dialog.waitFor({ state: 'detached' });
    expect(await world.cli('kv', 'get', 'made/here')).toContain('second');

    await tab.button('Watch live').click();
    await tab.page.locator('.badge', { hasText: 'live' }).waitFor();
    await world.cli('kv', 'put', 'made/here', 'third');
    await tab.page.locator('.events', { hasText: 'third' }).waitFor();
    await tab.sees(/has changed since you loaded it/);
    await tab.button('Load the present value').click();
    await tab.button('Value').click();
    await tab.page.locator('.value', { hasText: 'third' }).waitFor();
    await tab.act(tab.button('Delete'), {}, /was deleted/);
    expect((await runHere(world.cluster.endpoints, ['kv', 'get', 'made/here'])).code).toBe(1);
  });

  test('the value that a key had before it was deleted is two clicks away', async () => {
    await world.cli('kv', 'put', 'gone', 'the last value');
    await world.cli('kv', 'delete', 'gone');
    await tab.go('keys');
    await tab.page.getByRole('searchbox').fill('gone');
    await tab.page.getByRole('link', { name: 'Open exactly gone' }).click();
    await tab.button('Show its earlier values').click();
    await tab.page.locator('.version', { hasText: 'deleted' }).waitFor();
    await tab.page.locator('.version', { hasText: 'the last value' }).click();
    await tab.page.locator('.value', { hasText: 'the last value' }).waitFor();
  });

  test('keys are exported to a file, and imported from it', async () => {
    await world.cli('kv', 'put', 'stock/apples', '3');
    await world.cli('kv', 'put', 'stock/pears', '{"state":"open"}');
    await tab.go('keys?prefix=stock%2F');
    const [download] = await Promise.all([tab.page.waitForEvent('download'), tab.button('Export these').click()]);
    const file = await download.path();
    await world.cli('kv', 'delete', '--prefix', 'stock/');
    await tab.button('Import').click();
    await tab.page.getByLabel('File').setInputFiles(file);
    await tab.page.locator('dialog[open] button[type=submit]').click();
    await tab.page.locator('.toast', { hasText: '2 keys written' }).waitFor();
    expect(await world.cli('kv', 'get', 'stock/pears')).toContain('"state":"open"');
    await tab.go('keys');
    await tab.page.getByRole('button', { name: 'stock/' }).click();
    await tab.page.getByRole('link', { name: 'pears' }).click();
    await tab.page.locator('.value', { hasText: 'open' }).waitFor();
    await tab.picture('console-keys');
    expect(tab.faults).toEqual([]);
  });
});
