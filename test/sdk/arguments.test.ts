/** What callers pass: bytes that they go on using, and what is no argument at all. */
import { connect, type RemoraClient } from 'remora';
import { afterEach, describe, expect, test } from 'vitest';
import { codeOf, GATEWAYS, World } from '../support/sdk-world.ts';

const unhandled: unknown[] = [];
process.on('unhandledRejection', (reason) => unhandled.push(reason));
afterEach(() => {
  expect(unhandled.splice(0)).toEqual([]);
});

/** Of a caller without types. */
function untyped<T>(value: unknown): T {
  return value as T;
}

describe('bytes of the caller', () => {
  test('a lock is released by the name that it was acquired by, whatever its caller does with the bytes', async () => {
    const world = new World();
    const [client, other] = [await world.client(), await world.client()];
    const name = Buffer.from('orders/1');
    const lock = client.lock(name);
    name[7] = 0x32;
    const held = await world.until(lock.acquire());
    expect(await world.until(other.locks.show('orders/1'))).toBeDefined();
    name[7] = 0x33;
    await world.until(held.release());
    expect(await world.until(other.locks.show('orders/1'))).toBeUndefined();
  });

  test('a put writes what it was called with', async () => {
    const world = new World();
    const client = await world.client();
    const [key, value] = [Buffer.from('key'), Buffer.from('value')];
    const put = client.kv.put(key, value);
    key.fill(0);
    value.fill(0);
    await world.until(put);
    expect((await world.until(client.kv.get('key')))?.value.toString()).toBe('value');
  });

  test('the data of a lock are those that they were when they were given', async () => {
    const world = new World();
    const client = await world.client();
    const data = Buffer.from('first');
    const acquiring = client.lock('l').acquire({ data });
    data.write('XXXXX');
    const held = await world.until(acquiring);
    const dataNow = async () => (await world.until(client.locks.show('l')))?.holders.map((h) => String(h.data));
    expect(await dataNow()).toEqual(['first']);
    const next = Buffer.from('second');
    const said = Promise.all([held.setData('before'), held.setData(next)]);
    next.fill(0);
    await world.until(said);
    expect(await dataNow()).toEqual(['second']);
  });

  test('a watch that is opened again watches the keys that it was asked for', async () => {
    const world = new World();
    const client = await world.client();
    const key = Buffer.from('key');
    const watch = client.kv.watch(key);
    await world.until(watch.began());
    key.write('XXX');
    world.sever();
    await world.run(3_000);
    await world.until(client.kv.put('key', 'v'));
    const { value } = await world.until(watch.next());
    expect(String(value.kv.key)).toBe('key');
    watch.close();
  });
});

describe('what is no argument', () => {
  test('is refused before it comes into a frame with the requests of others', async () => {
    const world = new World();
    const client = await world.client();
    const held = await world.until(client.lock('held').acquire());
    const wrong = [
      () => client.lock(untyped(5)).acquire(),
      () => client.lock('l', { namespace: untyped(5) }).acquire(),
      () => client.lock('l').acquire({ data: untyped(5) }),
      () => client.lock('l').acquire({ token: untyped(5) }),
      () => client.kv.put('k', untyped(undefined)),
      () =>
        client.kv.put(
          'k',
          untyped(() => 'v'),
        ),
      () => client.kv.get(untyped(5)),
    ];
    for (const call of wrong) {
      const asked = (async () => call())();
      expect(await world.until(codeOf(asked))).toBe('INVALID_ARGUMENT');
      expect(world.held).toBe(world.backend.sessions);
    }
    await world.run(20_000);
    expect(held.state).toBe('active');
    await world.until(client.close());
    expect(world.backend.sessions).toBe(0);
  });

  test('takes nothing along with it that is sent with it, or after it', async () => {
    const world = new World();
    const client = await world.client();
    const held = await world.until(client.lock('held').acquire());
    const forgotToCall = untyped<string>(() => 'host');
    const wrong = [
      () => client.session({ attributes: { host: forgotToCall } }),
      () => client.lock('held').revoke({ by: forgotToCall, wait: 0 }),
      () => client.locks.forceRelease('held', { reason: forgotToCall }),
      () => client.kv.compact(untyped(Symbol('revision'))),
      () => client.sessions.list({ pageSize: untyped(() => 5) }).page(),
      () => held.acquire({ depthMax: untyped(5n) }),
      () => client.kv.watch('k', { startRevision: untyped(() => 5) }).next(),
    ];
    for (const call of wrong) {
      const asked = codeOf((async () => call())());
      const put = client.kv.put('k', 'v');
      expect(await world.until(asked)).toBe('INVALID_ARGUMENT');
      await world.until(put);
      expect(world.held).toBe(world.backend.sessions);
    }
    await world.run(20_000);
    expect(held.state).toBe('active');
  });

  test('a signal that is none is refused, and leaves nothing behind that keeps the process alive', async () => {
    const world = new World();
    const client = await world.client();
    const signal = untyped<AbortSignal>(new AbortController()); // instead of its signal
    const get = () => client.kv.get('k', { signal });
    const acquire = () => client.lock('l').acquire({ signal, ttl: '1h' });
    for (const call of [get, acquire] as readonly (() => Promise<unknown>)[]) {
      await expect(world.until(call())).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
      await world.run(100);
      expect([world.held, world.backend.sessions]).toEqual([0, 0]);
    }
  });

  test('what cannot be encoded ends its request, and the process may end', async () => {
    const world = new World();
    const client = await world.client();
    const compare = { key: 'k', target: 'version', is: untyped<'='>('constructor'), than: 1 } as const;
    const txn = () => client.kv.txn({ compare: [compare], success: [{ put: 'k', value: 'v' }] });
    // The first one waits for the ranges' time, the second one does not.
    for (let i = 0; i < 2; i++) {
      expect(await world.until(codeOf(txn()))).toBe('INVALID_ARGUMENT');
      expect(world.held).toBe(world.backend.sessions);
    }
    const sort = { by: untyped<'key'>('__proto__'), order: 'ascend' } as const;
    expect(await world.until(codeOf(client.kv.range('k', { sort })))).toBe('INVALID_ARGUMENT');
    expect(world.held).toBe(world.backend.sessions);
    await world.until(client.close());
  });
});

describe('numbers out of their bounds, and text that is none, are refused by name before anything is asked for', () => {
  type Call = (client: RemoraClient) => Promise<unknown>;
  const permits = 'permits to acquire: expected a whole number from 1 to 1000000, got';
  const capacity = 'the permits of a semaphore: expected a whole number from 1 to 1000000, got';
  const parties = 'the parties of a double barrier: expected a whole number from 1 to 100000, got';
  const version = 'a fencing version: expected a whole number from 0 to 9007199254740991, got';
  const seconds = " ms; a number counts milliseconds, write '5s' for seconds";
  const half = 'expected well-formed text, got text with half of a surrogate pair';
  const semaphore = (client: RemoraClient) => client.semaphore('s', { permits: 3 });

  test.each<readonly [string, Call]>([
    [`${permits} -1`, (c) => semaphore(c).acquire({ permits: -1 })],
    [`${permits} 1.5`, (c) => semaphore(c).acquire({ permits: 1.5 })],
    [`${permits} 0`, (c) => semaphore(c).tryAcquire({ permits: 0 })],
    [`${permits} 'many'`, (c) => semaphore(c).acquire({ permits: untyped('many') })],
    [`${permits} -2`, (c) => c.lockAll([{ semaphore: 's', capacity: 3, permits: -2 }]).acquire()],
    [`${capacity} undefined`, (c) => c.semaphore('s', untyped({})).acquire()],
    [`${capacity} 0`, (c) => semaphore(c).setPermits(0)],
    [`${capacity} 0.5`, (c) => semaphore(c).setPermits(0.5)],
    [`${parties} -1`, (c) => c.doubleBarrier('d', { parties: -1 }).enter()],
    [
      'depthMax: expected a whole number from 1 to 1000000, got 0',
      (c) => c.lock('l').acquire({ token: 't', depthMax: 0 }),
    ],
    ['pageSize: expected a whole number from 1 to 1000, got -5', async (c) => c.locks.list({ pageSize: -5 })],
    [`${version} '7'`, (c) => c.fence.check('l', untyped('7'))],
    [`ttl: expected at least 100 ms, got 5${seconds}`, (c) => c.session({ ttl: 5 })],
    [`ttl: expected at least 100 ms, got 30${seconds}`, (c) => c.lock('l').acquire({ ttl: 30 })],
    [`ttl: expected at least 100 ms, got 60${seconds}`, (c) => c.lease.grant(60)],
    ['timeout: expected 1 ms to 60 s, got 180000 ms', (c) => c.kv.put('k', 'v', { timeout: '3m' })],
    [`names, keys and values: ${half}`, async (c) => c.lock('a\ud800').acquire()],
    [`names, keys and values: ${half}`, (c) => c.kv.put('k', '\udc00')],
    [`token: ${half}`, (c) => c.lock('l').acquire({ token: '\ud800' })],
  ])('%s', async (message, call) => {
    const world = new World();
    const client = await world.client();
    const refusal = { code: 'INVALID_ARGUMENT', message: expect.stringContaining(message) };
    const called = (async () => call(client))(); // Some are refused before there is a promise.
    await expect(world.until(called)).rejects.toMatchObject(refusal);
    expect(world.held).toBe(world.backend.sessions);
    await world.until(client.close());
    expect(world.backend.sessions).toBe(0);
  });

  test('the TTL of sessions and the time of requests are looked at when the client connects', async () => {
    await expect(connect({ endpoints: '127.0.0.1:1', requestTimeout: '3m' })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: 'requestTimeout: expected 1 ms to 60 s, got 180000 ms',
    });
    await expect(connect({ endpoints: '127.0.0.1:1', sessionTtl: 10 })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: `sessionTtl: expected at least 100 ms, got 10${seconds}`,
    });
  });
});

describe('a name that a call does not take is refused: a misspelt fence would be a write without one', () => {
  type Call = (client: RemoraClient) => unknown;
  const t = untyped<object>;
  test.each<readonly [string, Call]>([
    [
      'put has no option fense; did you mean fence?',
      (c) => c.kv.put('k', 'v', t({ fense: { name: 'n', version: 5 } })),
    ],
    ['fence has no option vers', (c) => c.kv.put('k', 'v', { fence: untyped({ name: 'n', vers: 5 }) })],
    ['fence: expected a held lock, or', (c) => c.kv.put('k', 'v', { fence: untyped(null) })],
    ['a transaction has no option compares; did you mean compare?', (c) => c.kv.txn(t({ compares: [] }))],
    ['a transaction has no option succes; did you mean success?', (c) => c.kv.txn(t({ succes: [] }))],
    [
      'a put of a transaction has no option leas',
      (c) => c.kv.txn({ success: [untyped({ put: 'k', value: 'v', leas: 1n })] }),
    ],
    [
      'a comparison has no option thann; did you mean than?',
      (c) => c.kv.txn({ compare: [untyped({ key: 'k', target: 'modRevision', is: '=', thann: 1 })] }),
    ],
    [
      "is: expected one of =, >, <, !=, got '=='",
      (c) => c.kv.txn({ compare: [{ key: 'k', target: 'modRevision', is: untyped('=='), than: 1 }] }),
    ],
    ['get has no option revison; did you mean revision?', (c) => c.kv.get('k', t({ revison: 1 }))],
    ['delete has no option prefx', (c) => c.kv.delete('k', t({ prefx: true }))],
    ['watch has no option prevKV; did you mean prevKv?', (c) => c.kv.watch('k', t({ prevKV: true }))],
    [
      'lease: expected the id of a lease, a bigint of 64 bits other than 0n, got object',
      (c) => c.kv.put('k', 'v', { lease: untyped({ id: 5n }) }),
    ],
    ['the options of lock: expected an object, such as { namespace', (c) => c.lock('n', untyped('orders'))],
    ['lock has no option namespce; did you mean namespace?', (c) => c.lock('n', t({ namespce: 'x' }))],
    ['acquire has no option wiat; did you mean wait?', (c) => c.rwLock('n').read(t({ wiat: 1 }))],
    [
      'a lock of a set has no option share; did you mean shared?',
      (c) => c.lockAll([untyped({ lock: 'n', share: true })]),
    ],
    [
      'a lock of a set has no option semaphore',
      (c) => c.lockAll([untyped({ lock: 'n', semaphore: 'n', capacity: 3 })]),
    ],
    ["lockAll: expected a list of locks, got 'n'", (c) => c.lockAll(untyped('n'))],
    ['acquire of a set has no option token', (c) => c.lockAll(['n']).acquire(t({ token: 't' }))],
    ['the options of semaphore: expected an object', (c) => c.semaphore('n', untyped(undefined))],
    [
      'acquire of permits has no option permit; did you mean permits?',
      (c) => c.semaphore('n', { permits: 2 }).acquire(t({ permit: 2 })),
    ],
    ['doubleBarrier has no option party', (c) => c.doubleBarrier('n', untyped({ party: 3 }))],
    [
      'waiting at a barrier has no option ttl; its options are wait, signal',
      (c) => c.barrier('n').wait(t({ ttl: 1_000 })),
    ],
    [
      'campaign has no option val; its options are value, wait, signal, ttl',
      (c) => c.election('n').campaign(t({ val: 'x' })),
    ],
    ['session has no option tll; did you mean ttl?', (c) => c.session(t({ tll: 10 }))],
    ["attributes: expected text for 'a', got 1", (c) => c.session({ attributes: { a: untyped(1) } })],
    ['check: expected a function, got', (c) => c.session({ health: { check: untyped('true') } })],
    ['revoke has no option wiat; did you mean wait?', (c) => c.lock('n').revoke(t({ wiat: 1 }))],
    ['forceRelease has no option reson; did you mean reason?', (c) => c.locks.forceRelease('n', t({ reson: 'x' }))],
    ['list of locks has no option prfix; did you mean prefix?', async (c) => c.locks.list(t({ prfix: 'x' }))],
    ['events of a lock has no option sgnal; did you mean signal?', (c) => c.lock('n').events(t({ sgnal: 1 }))],
    ['guard has no option x', (c) => c.fence.guard(t({ x: 1 }))],
    [
      'condition has no option heartbeats',
      (c) => c.lock('n').acquire({ condition: untyped({ heartbeats: '1s', serverMisses: 3 }) }),
    ],
    ['the id of a session: expected a bigint, or hexadecimal text', (c) => c.sessions.show('5f3a.1')],
    ['session: expected the id of a lease, a bigint of 64 bits other than 0n, got 0', (c) => c.sessions.close(0n)],
    ['session: expected the id of a lease, a bigint of 64 bits', (c) => c.sessions.close(2n ** 64n + 5n)],
    ['lease: expected the id of a lease, a bigint of 64 bits', (c) => c.lease.revoke(2n ** 64n + 5n)],
    ['lease: expected the id of a lease, a bigint of 64 bits', (c) => c.kv.put('k', 'v', { lease: 2n ** 64n })],
  ])('%s', async (message, call) => {
    const world = new World();
    const client = await world.client();
    const called = (async () => call(client))();
    const refusal = { code: 'INVALID_ARGUMENT', message: expect.stringContaining(message) };
    await expect(world.until(called)).rejects.toMatchObject(refusal);
    expect((await world.until(client.kv.range({ prefix: '' }))).count).toBe(0);
    expect(await world.until(client.locks.list().toArray())).toEqual([]);
    await world.until(client.close());
  });

  test('of retry and of time-outs too, when it connects', async () => {
    const connecting = (options: object) => connect({ endpoints: '127.0.0.1:1', ...options });
    await expect(connecting({ retry: { attempt: 1 } })).rejects.toThrow(
      'retry has no option attempt; did you mean attempts?',
    );
    await expect(connecting({ requestTimeout: 0 })).rejects.toThrow('requestTimeout: expected 1 ms to 60 s, got 0 ms');
    await expect(connecting({ attributes: { a: 1 } })).rejects.toThrow("attributes: expected text for 'a', got 1");
  });
});

test('a session is shown by its id as people are shown it', async () => {
  const world = new World();
  const client = await world.client();
  await world.until(client.session());
  const [{ id } = { id: 0n }] = await world.until(client.sessions.list().toArray());
  expect((await world.until(client.sessions.show(id.toString(16))))?.id).toBe(id);
  await world.until(client.sessions.close(id.toString(16)));
  expect(await world.until(client.sessions.show(id))).toBeUndefined();
});

test.each<{ readonly handle: unknown }>([
  { handle: undefined },
  { handle: '5.1' },
  { handle: { lease: 'xyz', incarnation: 1, token: 't', attempt: 1 } },
  { handle: { lease: '12345678901234567', incarnation: 1, token: 't', attempt: 1 } },
  { handle: { lease: '5', token: 't', attempt: 1 } },
  { handle: { lease: '5', incarnation: 1, attempt: 1 } },
])('a leadership is not resumed by $handle', async ({ handle }) => {
  const world = new World();
  const client = await world.client();
  const resumed = client.election('e').resume(untyped(handle));
  await expect(world.until(resumed)).rejects.toMatchObject({
    code: 'INVALID_ARGUMENT',
    message: expect.stringMatching(/^handle: /),
  });
});

test('an option that is there and undefined is as one that is not', async () => {
  const world = new World();
  const none = undefined;
  const client = await world.client({ requestTimeout: none, sessionTtl: none, attributes: none, retry: none });
  const lease = { ttl: none, renew: none, maxHold: none, condition: none };
  const rest = { data: none, keepData: none, lockDelay: none, token: none, depthMax: none, onRevoke: none };
  const held = await world.until(
    client.lock('l', { namespace: none }).acquire({ wait: none, signal: none, ...lease, ...rest }),
  );
  expect(await world.until(client.locks.list({ prefix: none, pageSize: none }).toArray())).toHaveLength(1);
  await world.until(held.acquire({ depthMax: none, signal: none }));
  await world.until(client.kv.put('k', 'v', { timeout: none, signal: none, fence: none, lease: none, prevKv: none }));
  const range = { limit: none, keysOnly: none, countOnly: none, sort: none, revision: none, serializable: none };
  expect((await world.until(client.kv.range({ prefix: 'k' }, range))).count).toBe(1);
  const leader = client.election('e', { namespace: none });
  await world.until(leader.campaign({ value: none, wait: none, signal: none, ttl: none }));
  const one = client.semaphore('s', { permits: 1, namespace: none });
  expect(await world.until(one.tryAcquire({ permits: none }))).toBeDefined();
  await world.until(client.session({ ttl: none, attributes: none, health: none }));
});

describe('a signal that was aborted before the call', () => {
  test('ends a change at once, though the ranges do not answer', async () => {
    const world = new World();
    const client = await world.client();
    for (const address of GATEWAYS) world.isolated.add(address);
    const put = client.kv.put('k', 'v', { signal: AbortSignal.abort() });
    expect(await world.until(codeOf(put), 50)).toBe('CANCELED');
    expect(world.held).toBe(world.backend.sessions);
    await world.until(client.close());
  });
});

describe('options that are none', () => {
  const acquire = async (options: unknown): Promise<unknown> => {
    const world = new World();
    const client = await world.client();
    return world.until(client.lock('l').acquire(untyped(options)));
  };

  test.each([
    { options: { wiat: '5s' }, message: 'acquire has no option wiat; did you mean wait?' },
    { options: { zzz: 1 }, message: /acquire has no option zzz; its options are wait, signal, / },
    { options: 5_000, message: "the options of acquire: expected an object, such as { wait: '5s' }, got number" },
    { options: '5s', message: /expected an object, .* got string/ },
    { options: null, message: /expected an object, .* got null/ },
  ])('are refused before anything is asked for: $options', async ({ options, message }) => {
    await expect(acquire(options)).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: typeof message === 'string' ? message : expect.stringMatching(message),
    });
  });

  test('nothing is acquired for what cannot be run', async () => {
    const world = new World();
    const client = await world.client();
    const run = client.lock('l').run({ wait: '5s' }, untyped<() => void>(5));
    await expect(world.until(run)).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(await world.until(client.locks.show('l'))).toBeUndefined();
  });

  test.each([
    { options: undefined, message: /the options of connect: expected an object/ },
    { options: {}, message: /endpoints/ },
    {
      options: { endpoints: '127.0.0.1:1', sesionTtl: '3s' },
      message: /has no option sesionTtl; did you mean sessionTtl/,
    },
    { options: { endpoints: [7480] }, message: /endpoints/ },
    { options: { endpoints: '127.0.0.1' }, message: /endpoints/ },
    { options: { endpoints: '127.0.0.1:99999' }, message: /endpoints/ },
  ])('of connect are refused at once: $options', async ({ options, message }) => {
    await expect(connect(untyped(options))).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      message: expect.stringMatching(message),
    });
  });
});
