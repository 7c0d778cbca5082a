import { connect, type HeldLock, type RemoraClient, RemoraError } from 'remora';
import { afterEach, describe, expect, test } from 'vitest';
import { startTestCluster, type TestCluster, type TestClusterOptions } from './index.ts';

const TTL_MS = 10_000;
let clusters: TestCluster[] = [];

async function started(options?: TestClusterOptions): Promise<TestCluster> {
  const cluster = await startTestCluster(options);
  clusters.push(cluster);
  return cluster;
}

afterEach(async () => {
  await Promise.all(clusters.splice(0).map((cluster) => cluster.stop()));
  clusters = [];
});

const codeOf = (error: unknown): unknown => (error instanceof RemoraError ? error.code : error);
const failure = (promise: Promise<unknown>): Promise<unknown> => promise.then(() => 'none', codeOf);

describe.each([{ clock: 'running' }, { clock: 'manual' }] as const)('a cluster whose clock is $clock', (options) => {
  test('serves at once, and is well', async () => {
    const cluster = await started(options);
    const remora = await cluster.connect();
    const { conditions, range } = await remora.status();
    expect([conditions, range === undefined]).toEqual([[], false]);
    await remora.kv.put('large', Buffer.alloc(1_500_000, 7));
    expect((await remora.kv.get('large'))?.value.length).toBe(1_500_000);
  });

  test('keeps the sessions of its clients while time is skipped', async () => {
    const cluster = await started(options);
    const held = await (await cluster.connect()).lock('orders/42').acquire();
    await cluster.advance('1m30s');
    expect(held.state).toBe('active');
    await held.release();
  });

  test('lets a waiter give up after its time', async () => {
    const cluster = await started(options);
    await (await cluster.connect()).lock('l').acquire();
    const waiting = failure((await cluster.connect()).lock('l').acquire({ wait: '20s' }));
    await cluster.advance('21s');
    expect(await waiting).toBe('LOCK_TIMEOUT');
  });

  test('starts again with its data and its sessions', async () => {
    const cluster = await started(options);
    const remora = await cluster.connect();
    const held = await remora.lock('l').acquire();
    await remora.kv.put('k', 'v');
    await cluster.restart();
    await cluster.advance('1m');
    expect(held.state).toBe('active');
    expect((await remora.kv.get('k'))?.value.toString()).toBe('v');
    expect(await failure((await cluster.connect()).lock('l').acquire({ wait: 0 }))).toBe('LOCK_BUSY');
  });
});

describe('expire', () => {
  test('passes a lock on at once; its holder hears of it by its next heartbeat', async () => {
    const cluster = await started({ clock: 'manual' });
    const [one, two] = [await cluster.connect(), await cluster.connect()];
    const first = await one.lock('l').acquire();
    const waiting = two.lock('l').acquire({ wait: '1h' });
    await cluster.expire(first);
    const second = await waiting;
    expect([first.state, second.state]).toEqual(['active', 'active']);
    expect(second.version).toBeGreaterThan(first.version);
    await cluster.advance(TTL_MS / 2);
    expect([first.state, first.signal.aborted, codeOf(first.signal.reason)]).toEqual(['lost', true, 'SESSION_EXPIRED']);
    expect(second.state).toBe('active');
  });

  const HANDLES: readonly {
    what: string;
    of: (remora: RemoraClient, held: HeldLock) => Parameters<TestCluster['expire']>[0];
  }[] = [
    { what: 'a held lock', of: (_remora, held) => held },
    { what: 'the id of its session', of: (_remora, held) => BigInt(`0x${held.handle.lease}`) },
    { what: 'an object with that id', of: (_remora, held) => ({ lease: BigInt(`0x${held.handle.lease}`) }) },
    { what: 'a client', of: (remora) => remora },
  ];
  test.each(HANDLES)('takes $what', async ({ of }) => {
    const cluster = await started({ clock: 'manual' });
    const remora = await cluster.connect();
    const held = await remora.lock('l').acquire();
    await cluster.expire(of(remora, held));
    await cluster.advance(TTL_MS / 2);
    expect(held.state).toBe('lost');
    expect(await failure(cluster.expire(of(remora, held)))).toBe('LEASE_NOT_FOUND');
  });

  test('ends all sessions of a client, and those of no other', async () => {
    const cluster = await started({ clock: 'manual' });
    const [one, two] = [await cluster.connect(), await cluster.connect()];
    const session = await one.session();
    const [own, ofSession] = [await one.lock('a').acquire(), await session.lock('b').acquire()];
    const others = await two.lock('c').acquire();
    await cluster.expire(one);
    await cluster.advance(TTL_MS);
    expect([own.state, ofSession.state, session.state, others.state]).toEqual(['lost', 'lost', 'lost', 'active']);
  });

  test('reports that the session expired, to those who watch the lock', async () => {
    const cluster = await started({ clock: 'manual' });
    const remora = await cluster.connect();
    const held = await remora.lock('l').acquire();
    const events = (await cluster.connect()).lock('l').events();
    const seen: string[] = [];
    const watching = (async () => {
      for await (const event of events)
        seen.push(JSON.stringify(event, (_k, v) => (typeof v === 'bigint' ? `${v}` : v)));
    })();
    await cluster.advance(0);
    await cluster.expire(held);
    await cluster.advance('1s');
    await events.close();
    await watching;
    expect(seen.join('\n')).toMatch(/expired/);
  });
});

describe('a client that is cut off', () => {
  test('knows that it has lost its locks before somebody else gets them', async () => {
    const cluster = await started({ clock: 'manual' });
    const [one, two] = [await cluster.connect(), await cluster.connect()];
    const held = await one.lock('l').acquire();
    const seen: string[] = [];
    held.signal.addEventListener('abort', () => seen.push('lost'));
    const waiting = two
      .lock('l')
      .acquire({ wait: '1h' })
      .then(() => seen.push('granted'));
    cluster.cutOff(one);
    await cluster.advance(TTL_MS / 2);
    expect([held.state, seen]).toEqual(['active', []]);
    await cluster.advance(TTL_MS);
    await waiting;
    expect(seen).toEqual(['lost', 'granted']);
    cluster.reconnect(one);
    const again = one.lock('other').acquire({ wait: '1m' });
    await cluster.advance('10s');
    expect((await again).state).toBe('active');
  });

  test('keeps them if it is connected again in time', async () => {
    const cluster = await started({ clock: 'manual' });
    const remora = await cluster.connect();
    const held = await remora.lock('l').acquire();
    cluster.cutOff(remora);
    await cluster.advance(TTL_MS / 2);
    cluster.reconnect(remora);
    await cluster.advance('1m');
    expect(held.state).toBe('active');
  });

  test('sends and receives nothing: a write of that time is carried out later, once', async () => {
    const cluster = await started({ clock: 'manual' });
    const [one, two] = [await cluster.connect(), await cluster.connect()];
    await one.kv.put('k', 'before');
    cluster.cutOff(one);
    const write = one.kv.put('k', 'after', { timeout: '30s' });
    await cluster.advance('2s');
    expect((await two.kv.get('k'))?.value.toString()).toBe('before');
    cluster.reconnect(one);
    await cluster.advance('5s');
    await write;
    expect(await two.kv.get('k')).toMatchObject({ value: Buffer.from('after'), version: 2 });
  });

  test('is another one than a client of another cluster', async () => {
    const [cluster, other] = [await started(), await started()];
    const remora = await other.connect();
    expect(() => cluster.cutOff(remora)).toThrow('not one that this cluster has connected');
  });
});

test('after disconnect, a client repeats what was under way, and it is done once', async () => {
  const cluster = await started({ clock: 'manual' });
  const remora = await cluster.connect();
  const held = await remora.lock('l').acquire();
  const writes = Array.from({ length: 20 }, (_, i) => remora.kv.put('k', `${i}`));
  await new Promise((resolve) => setImmediate(resolve));
  cluster.disconnect(remora);
  await cluster.advance('5s');
  await Promise.all(writes);
  expect(await remora.kv.get('k')).toMatchObject({ version: 20 });
  expect(held.state).toBe('active');
});

test('equal seeds and equal calls have equal courses', async () => {
  const course = async (seed: number): Promise<unknown> => {
    const cluster = await started({ clock: 'manual', seed });
    const [one, two] = [await cluster.connect(), await cluster.connect()];
    const held = await one.lock('l').acquire();
    const waiting = two.lock('l').acquire({ wait: '1h' });
    cluster.cutOff(one);
    await cluster.advance('20s');
    const next = await waiting;
    return [held.handle, next.handle, next.version, next.remainingMs, cluster.clock.monotonicMs()];
  };
  const [first, second, third] = [await course(7), await course(7), await course(8)];
  expect(second).toEqual(first);
  expect(third).not.toEqual(first);
});

describe('a cluster that listens', () => {
  test('serves programs outside of its clock, and its own clients', async () => {
    const cluster = await started({ listen: true });
    const { client = '', http = '', health = '' } = cluster.addresses ?? {};
    const outside = await connect({ endpoints: client, releaseOnExit: false });
    const inside = await cluster.connect();
    try {
      const held = await outside.lock('l').acquire();
      expect(await failure(inside.lock('l').acquire({ wait: 0 }))).toBe('LOCK_BUSY');
      await held.release();
    } finally {
      await outside.close();
    }
    const [ready, locks] = await Promise.all([fetch(`http://${health}/ready`), fetch(`http://${http}/v1/namespaces`)]);
    expect([ready.status, locks.status]).toEqual([200, 200]);
    await Promise.all([ready.text(), locks.text()]);
  });

  test('does so with a clock that stands still', async () => {
    const cluster = await started({ listen: true, clock: 'manual' });
    const response = await fetch(`http://${cluster.addresses?.http}/v1/namespaces`);
    expect(await response.json()).toMatchObject({ namespaces: [] });
  });
});

describe('a cluster that was stopped', () => {
  test('has closed its clients, and takes no more', async () => {
    const cluster = await started();
    const remora = await cluster.connect();
    const held = await remora.lock('l').acquire();
    await cluster.stop();
    await cluster.stop();
    expect(held.signal.aborted).toBe(true);
    expect(await failure(remora.lock('l').acquire())).not.toBe('none');
    expect(await failure(cluster.connect())).toBe('UNAVAILABLE');
    expect(await failure(cluster.restart())).toBe('UNAVAILABLE');
    expect(await failure(cluster.expire(1n))).toBe('UNAVAILABLE');
  });

  test('is stopped by `await using`, also while a client is cut off', async () => {
    let held: HeldLock | undefined;
    {
      await using cluster = await startTestCluster({ clock: 'manual' });
      const remora = await cluster.connect();
      held = await remora.lock('l').acquire();
      cluster.cutOff(remora);
    }
    expect(held.signal.aborted).toBe(true);
  });
});

describe('invalid arguments are refused, with what is right', () => {
  const wrong =
    (options: object): (() => Promise<unknown>) =>
    () =>
      startTestCluster(options);
  const rows: readonly { what: string; call: (cluster: TestCluster) => Promise<unknown>; says: RegExp }[] = [
    { what: 'an option that is none', call: wrong({ nodes: 3 }), says: /no option nodes; its options are clock, seed/ },
    { what: 'a clock that is none', call: wrong({ clock: 'fast' }), says: /expected 'running' or 'manual', got fast/ },
    { what: 'a seed that is none', call: wrong({ seed: 1.5 }), says: /expected a whole number from 0 on, got 1.5/ },
    { what: 'listen that is no flag', call: wrong({ listen: 'yes' }), says: /expected true or false, got yes/ },
    { what: 'a time that is none', call: (c) => c.advance('soon'), says: /such as '31s', at most 30 days, got soon/ },
    { what: 'a negative time', call: (c) => c.advance(-1), says: /got -1/ },
    { what: 'too long a time', call: (c) => c.advance('31d'), says: /at most 30 days/ },
    { what: 'an option of no client', call: (c) => c.connect({ ttl: 1 } as object), says: /ttl/ },
    { what: 'a session that is none', call: (c) => c.expire('l' as never), says: /expected a client of the cluster/ },
  ];
  test.each(rows)('$what', async ({ call, says }) => {
    const error: unknown = await call(await started()).catch((thrown: unknown) => thrown);
    expect(codeOf(error)).toBe('INVALID_ARGUMENT');
    expect((error as Error).message).toMatch(says);
  });
});
