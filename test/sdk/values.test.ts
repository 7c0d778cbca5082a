import { inspect } from 'node:util';
import { json, KvPair, type RemoraClient, RemoraError, text } from 'remora';
import { beforeEach, describe, expect, test } from 'vitest';
import { World } from '../support/sdk-world.ts';

let world: World;
let client: RemoraClient;
beforeEach(async () => {
  world = new World();
  client = await world.client();
});

/** The code of the error that is thrown. */
function codeOf(call: () => unknown): string {
  try {
    call();
    return 'ok';
  } catch (error) {
    return error instanceof RemoraError ? error.code : String(error);
  }
}

async function written(value: string | Uint8Array) {
  await world.until(client.kv.put('users/ada', value));
  const pair = await world.until(client.kv.get('users/ada'));
  if (pair === undefined) throw new Error('the key is missing');
  return pair;
}

describe('a value', () => {
  test('that is text is read as text', async () => {
    expect((await written('grüße')).text()).toBe('grüße');
  });

  test('that was encoded as JSON is read as JSON', async () => {
    const ada = { admin: true, tags: ['a', 'ß'] };
    const pair = await written(json.encode(ada));
    expect([pair.json(), json.decode(pair.value)]).toEqual([ada, ada]);
  });

  test('that is not UTF-8 is refused as text and as JSON, and left as bytes', async () => {
    const pair = await written(Buffer.of(0xff, 0x00));
    expect([codeOf(() => pair.text()), codeOf(() => pair.json())]).toEqual(['INVALID_ARGUMENT', 'INVALID_ARGUMENT']);
    expect(pair.value).toEqual(Buffer.of(0xff, 0x00));
  });

  test('that is text, and not JSON, is refused as JSON', async () => {
    const pair = await written('{');
    expect(() => pair.json()).toThrow(/not JSON/);
  });
});

test.each([undefined, () => {}, 5n, Symbol('s')])('%s cannot be encoded as JSON', (value) => {
  expect(codeOf(() => json.encode(value))).toBe('INVALID_ARGUMENT');
});

test('half of a surrogate pair is no text', () => {
  expect(codeOf(() => text.encode('\ud800'))).toBe('INVALID_ARGUMENT');
});

describe('in JSON', () => {
  test('a pair is text, and bytes that are no text are base64', async () => {
    await world.until(client.kv.put('k', Buffer.of(0xff)));
    const pair = await world.until(client.kv.get('k'));
    expect(JSON.parse(JSON.stringify(pair))).toMatchObject({ key: 'k', value: { base64: '/w==' }, version: 1 });
  });

  test('a pair names its lease, if it has one', () => {
    const pair = { key: Buffer.of(107), value: Buffer.of(118), createRevision: 1, modRevision: 2, version: 2 };
    const plain = { ...pair, key: 'k', value: 'v' };
    expect(JSON.parse(JSON.stringify(new KvPair({ ...pair, lease: 255n })))).toEqual({ ...plain, lease: 'ff' });
    expect(JSON.parse(JSON.stringify(new KvPair({ ...pair, lease: 0n })))).toEqual(plain);
  });

  test('ids are hexadecimal text, as the command line shows them, at every depth', async () => {
    const session = await world.until(client.session());
    const held = await world.until(session.lock('orders/42').acquire({ data: 'note' }));
    const id = session.lease.toString(16);
    const state = await world.until(client.locks.show('orders/42'));
    const [holder] = state?.holders ?? [];
    expect(JSON.parse(JSON.stringify({ state })).state).toMatchObject({
      lock: { namespace: 'default', name: 'orders/42' },
      holders: [{ version: held.version, data: 'note', owner: { session: { lease: id } } }],
    });
    expect(JSON.parse(JSON.stringify(holder))).toMatchObject({ data: 'note', owner: { session: { lease: id } } });
    expect(JSON.parse(JSON.stringify(session))).toEqual({ lease: id, ttlMs: 10_000, state: 'active' });
    expect(holder?.owner.session.lease).toBe(session.lease); // PN2
  });

  test('a negative id is written as 64 bits without a sign', async () => {
    const lease = await world.until(client.lease.grant('10s', { id: -1n }));
    expect(JSON.stringify(lease)).toBe('{"id":"ffffffffffffffff","ttlMs":10000}');
  });

  test('a held lock has its name, version, mode and state, and not its token', async () => {
    const held = await world.until(client.lock('orders/42', { namespace: 'shop' }).acquire());
    const { version } = held;
    const expected = { namespace: 'shop', name: 'orders/42', version, mode: 'exclusive', state: 'active' };
    expect(JSON.parse(JSON.stringify(held))).toEqual(expected);
    await world.until(held.release());
    expect(JSON.parse(JSON.stringify(held))).toEqual({ ...expected, state: 'released' });
  });
});

describe('console.log shows', () => {
  test('the name, version and state of a held lock', async () => {
    const held = await world.until(client.lock('orders/42').acquire());
    expect(inspect(held)).toMatch(/^HeldLock \{[^}]*name: 'orders\/42'[^}]*version: \d+[^}]*state: 'active'/s);
    expect(inspect(held)).not.toContain(held.token);
  });

  test('the name of whatever can be locked', () => {
    expect(inspect(client.lock('l'))).toBe(`Lock { namespace: 'default', name: 'l' }`);
    expect(inspect(client.semaphore('s', { permits: 1 }))).toBe(`Semaphore { namespace: 'default', name: 's' }`);
  });

  test('text and ids in results', async () => {
    await world.until(client.kv.put('k', 'v'));
    expect(inspect(await world.until(client.kv.get('k')))).toMatch(/^KvPair \{\s+key: 'k',\s+value: 'v',/);
    const held = await world.until(client.lock('l').acquire());
    const shown = inspect(await world.until(client.locks.show('l')), { depth: 9 });
    expect(shown).toContain(`name: 'l'`);
    expect(shown).toContain(`lease: '${held.handle.lease}'`);
  });
});
