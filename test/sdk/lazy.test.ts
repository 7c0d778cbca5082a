import { SeededRandom } from '@remora/base';
import { SimDisk } from '@remora/base/testing';
import { beforeEach, describe, expect, test } from 'vitest';
import { codeOf, GATEWAYS, World } from '../support/sdk-world.ts';

let world: World;
beforeEach(() => {
  world = new World();
  for (const address of GATEWAYS) world.down.add(address);
});

const LAZY = { lazy: true, requestTimeout: 500, connectTimeout: 500 } as const;

describe('a lazy client of a cluster that is not there yet', () => {
  test('is there at once, and ready when the cluster is', async () => {
    const client = await world.client(LAZY);
    let ready = false;
    const waiting = client.ready().then(() => {
      ready = true;
    });
    await world.run(60_000);
    expect(ready).toBe(false);
    world.down.clear();
    await world.until(waiting);
    const held = await world.until(client.lock('l').acquire());
    expect(held.state).toBe('active');
    await world.until(client.close());
    expect(world.held).toBe(0);
  });

  test('answers requests as during an outage, each in its own time', async () => {
    const client = await world.client(LAZY);
    expect(await world.until(codeOf(client.kv.get('k')))).toBe('DEADLINE_EXCEEDED');
    expect(await world.until(codeOf(client.lock('l').acquire({ wait: 0 })))).toBe('DEADLINE_EXCEEDED');
    world.down.clear();
    expect(await world.until(codeOf(client.kv.get('k', { timeout: '5s' })))).toBe('ok');
  });

  test('can be closed, which ends the waiting', async () => {
    const client = await world.client(LAZY);
    const ready = codeOf(client.ready());
    await world.run(1_000);
    await world.until(client.close());
    expect([await world.until(ready), world.held]).toEqual(['CANCELED', 0]);
  });

  test('with a journal opens no session before it knows the cluster, and names it then', async () => {
    const disk = new SimDisk({ random: new SeededRandom(1) });
    const self = { host: 'h', boot: 'b', space: 's', pid: 1, start: '1' };
    const client = await world.client(LAZY, 1, { journal: { disk: disk.mount(), self, isGone: () => false } });
    expect(await world.until(codeOf(client.lock('l').acquire()))).toBe('UNAVAILABLE');
    expect(await disk.list('')).toEqual([]);
    world.down.clear();
    await world.until(client.ready());
    await world.until(client.lock('l').acquire());
    const [file = ''] = await disk.list('');
    const written = await (await disk.mount().open(file, { create: false })).read(0, 10_000);
    expect(JSON.parse(String(written))).toMatchObject({ cluster: 'test-cluster' });
  });
});

test('a client that is not lazy does not begin without a cluster', async () => {
  const failing = world.client({ connectTimeout: 500 });
  await expect(failing).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    message: expect.stringMatching(/^no gateway answered within 500ms at a:1, b:1 \(.+\); check that a cluster runs/),
  });
});

test('`ready` of any other client resolves at once', async () => {
  world.down.clear();
  await world.until((await world.client()).ready());
});

test('many clients begin at gateways that are spread evenly', async () => {
  world.down.clear();
  for (let i = 0; i < 60; i++) await world.client();
  const first = (address: string): number => world.links.filter((link) => link.address === address).length;
  expect([first('a:1') > 15, first('b:1') > 15]).toEqual([true, true]);
});
