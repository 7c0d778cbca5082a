import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { connect, type KvWatch, type RemoraClient, type WatchEvent } from 'remora';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';

let cluster: Cluster;
let client: RemoraClient;
let other: RemoraClient;

beforeAll(async () => {
  cluster = await Cluster.start();
  client = await connect({ endpoints: cluster.endpoints });
  other = await connect({ endpoints: cluster.endpoints });
});
afterAll(async () => {
  await Promise.all([client?.close(), other?.close()]);
  await cluster?.stop();
});

const unique = (name: string) => `${name}/${randomUUID()}`;
const code = (expected: string) => expect.objectContaining({ code: expected });

describe('keys and values', () => {
  test('a put is read by another client at once, and a delete too', async () => {
    const key = unique('put');
    const { revision } = await client.kv.put(key, 'one');
    const read = await other.kv.get(key);
    expect(read).toMatchObject({ createRevision: revision, modRevision: revision, version: 1, lease: 0n });
    expect(read?.value.toString()).toBe('one');
    expect((await other.kv.delete(key, { prevKv: true })).prev.map(({ value }) => value.toString())).toEqual(['one']);
    expect(await client.kv.get(key)).toBeUndefined();
    expect((await client.kv.get(key, { revision }))?.value.toString()).toBe('one');
  });

  test('a prefix is read in order, with limit and count', async () => {
    const prefix = unique('prefix');
    await Promise.all(['c', 'a', 'b'].map((name) => client.kv.put(`${prefix}/${name}`, name)));
    const { kvs, more, count } = await other.kv.range({ prefix: `${prefix}/` }, { limit: 2 });
    expect(kvs.map(({ value }) => value.toString())).toEqual(['a', 'b']);
    expect({ more, count }).toEqual({ more: true, count: 3 });
  });

  test('of many transactions that create one key, through all gateways, one succeeds', async () => {
    const key = unique('create');
    const create = (by: RemoraClient, value: string) =>
      by.kv.txn({
        compare: [{ key, target: 'createRevision', is: '=', than: 0 }],
        success: [{ put: key, value }],
        failure: [{ get: key }],
      });
    const attempts = Array.from({ length: 20 }, (_, i) => create(i % 2 === 0 ? client : other, String(i)));
    const answers = await Promise.all(attempts);
    const winners = answers.flatMap(({ succeeded }, i) => (succeeded ? [String(i)] : []));
    expect(winners).toHaveLength(1);
    for (const { succeeded, results } of answers.filter((each) => !each.succeeded)) {
      expect(succeeded).toBe(false);
      expect(results[0]).toMatchObject({ type: 'get', kvs: [{ value: Buffer.from(winners[0] ?? '') }] });
    }
  });

  test('a watch tells every change once and in order, from the past into the present', async () => {
    const prefix = unique('watch');
    const first = await client.kv.put(`${prefix}/a`, '0');
    for (let i = 1; i < 50; i++) await client.kv.put(`${prefix}/a`, String(i));
    const watch = other.kv.watch({ prefix: `${prefix}/` }, { startRevision: first.revision, prevKv: true });
    const past = await take(watch, 50);
    expect(past.map(({ kv }) => kv.value.toString())).toEqual(past.map((_, i) => String(i)));
    expect(past.map(({ prev }) => prev?.value.toString())).toEqual(
      past.map((_, i) => (i === 0 ? undefined : String(i - 1))),
    );
    await client.kv.delete(`${prefix}/a`);
    const [deletion] = await take(watch, 1);
    expect(deletion?.type).toBe('delete');
    await watch.return();
  });

  test('keys of a lease go when it is revoked', async () => {
    const key = unique('lease');
    const { id } = await client.lease.grant('30s');
    await client.kv.put(key, 'leased', { lease: id });
    expect((await client.lease.timeToLive(id, { keys: true }))?.keys.map(String)).toHaveLength(1);
    await client.lease.revoke(id);
    expect(await client.kv.get(key)).toBeUndefined();
    expect(await client.lease.timeToLive(id)).toBeUndefined();
  });
});

describe('locks', () => {
  test('a lock excludes, is given back by `await using`, and versions grow', async () => {
    const name = unique('lock');
    let first: number;
    {
      await using held = await client.lock(name).acquire();
      first = held.version;
      expect(held.state).toBe('active');
      expect(held.remainingMs).toBeGreaterThan(0);
      expect(await held.check()).toBe(true);
      expect(await other.lock(name).tryAcquire()).toBeUndefined();
      await expect(other.lock(name).acquire({ wait: 0 })).rejects.toThrow(code('LOCK_BUSY'));
    }
    const held = await other.lock(name).tryAcquire();
    expect(held?.version).toBeGreaterThan(first);
    expect(await client.locks.check([{ name, version: first }])).toEqual([false]);
    await held?.release();
    expect(await client.locks.show(name)).toBeUndefined();
  });

  test('waiters are served in the order in which they came', async () => {
    const name = unique('fifo');
    const held = await client.lock(name).acquire();
    const order: number[] = [];
    const waiters: Promise<void>[] = [];
    for (let i = 0; i < 5; i++) {
      const waiting = (i % 2 === 0 ? client : other).lock(name).acquire({ wait: '60s' });
      waiters.push(
        waiting.then(async (granted) => {
          order.push(i);
          await granted.release();
        }),
      );
      await eventually('it is in the queue', async () => (await client.locks.show(name))?.waiters.length === i + 1);
    }
    await held.release();
    await Promise.all(waiters);
    expect(order).toEqual([0, 1, 2, 3, 4]);
  });

  test('a wait ends by its time-out, and leaves the queue', async () => {
    const name = unique('timeout');
    await using _held = await client.lock(name).acquire();
    await expect(other.lock(name).acquire({ wait: 300 })).rejects.toThrow(code('LOCK_TIMEOUT'));
    await eventually('the queue is empty', async () => (await client.locks.show(name))?.waiters.length === 0);
  });

  test('a wait that is aborted leaves the queue, and the next one is not kept waiting', async () => {
    const name = unique('cancel');
    const held = await client.lock(name).acquire();
    const controller = new AbortController();
    const canceled = other.lock(name).acquire({ signal: controller.signal });
    await eventually('it is in the queue', async () => (await client.locks.show(name))?.waiters.length === 1);
    const next = other.lock(name).acquire({ wait: '60s' });
    await eventually('both are in the queue', async () => (await client.locks.show(name))?.waiters.length === 2);
    controller.abort(new Error('changed my mind'));
    await expect(canceled).rejects.toThrow(code('CANCELED'));
    await held.release();
    await (await next).release();
  });

  test('force release takes the lock away: its holder finds out by asking, and its release says so', async () => {
    const name = unique('force');
    const held = await client.lock(name).acquire();
    await other.locks.forceRelease(name);
    await using next = await other.lock(name).acquire({ wait: '60s' });
    expect(next.version).toBeGreaterThan(held.version);
    expect(await held.check()).toBe(false);
    expect(held.state).toBe('lost');
    expect(held.signal.aborted).toBe(true);
  });

  test('force release is heard at once by who looks at the signal', async () => {
    const name = unique('heard');
    const held = await client.lock(name).acquire();
    const lost = once(held.signal, 'abort');
    await other.locks.forceRelease(name);
    await lost;
    expect(held.state).toBe('lost');
    await using next = await other.lock(name).acquire({ wait: '60s' });
    expect(next.version).toBeGreaterThan(held.version);
  });

  test('a session that is revoked at the server is lost: its lock is free and its holder is told', async () => {
    const name = unique('loss');
    const session = await client.session({ ttl: '2s' });
    const held = await session.lock(name).acquire();
    const lost = once(held.signal, 'abort');
    await other.lease.revoke(session.lease);
    await using next = await other.lock(name).acquire({ wait: '60s' });
    expect(next.version).toBeGreaterThan(held.version);
    await lost;
    expect(held.state).toBe('lost');
    expect(session.state).toBe('lost');
    expect(() => held.throwIfLost()).toThrow(code('SESSION_EXPIRED'));
    await expect(session.lock(name).acquire({ wait: 0 })).rejects.toThrow(code('SESSION_EXPIRED'));
  });
});

describe('a waiter gets the lock', () => {
  /** For a busy machine. */
  const SLACK_MS = 15_000;

  test('promptly when it is released', async () => {
    const name = unique('prompt');
    const held = await client.lock(name).acquire();
    const waiting = other.lock(name).acquire({ wait: '60s' });
    await eventually('it is in the queue', async () => (await client.locks.show(name))?.waiters.length === 1);
    const released = performance.now();
    await held.release();
    const next = await waiting;
    expect(performance.now() - released).toBeLessThan(SLACK_MS);
    await next.release();
  });

  test.each([
    ['SIGKILL', 'killed'],
    ['SIGSTOP', 'frozen'],
  ] as const)('when its TTL is over, but not at once, after %s of its holder', async (signal, how) => {
    const name = unique(how);
    const ttlMs = 4_000;
    const program = fileURLToPath(new URL('lock-holder.mjs', import.meta.url));
    const holder = spawn(process.execPath, [program, cluster.endpoints.join(), name, String(ttlMs)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      const output = linesOf(holder);
      const version = Number(await output());
      const waiting = other.lock(name).acquire({ wait: '60s' });
      await eventually('it is in the queue', async () => (await client.locks.show(name))?.waiters.length === 1);
      const begun = performance.now();
      holder.kill(signal);
      await using next = await waiting;
      const tookMs = performance.now() - begun;
      expect(tookMs).toBeLessThan(ttlMs + SLACK_MS);
      // Its last heartbeat is a third of the TTL old, or somewhat more on a busy machine.
      expect(tookMs).toBeGreaterThan(ttlMs / 4);
      expect(next.version).toBeGreaterThan(version);
      expect(await client.locks.check([{ name, version }])).toEqual([false]);
      if (signal === 'SIGKILL') return;
      // It wakes up with a lock that it does not have any more, and is told so first of all.
      holder.kill('SIGCONT');
      expect(await output()).toBe('lost');
    } finally {
      holder.kill('SIGKILL');
    }
  });
});

/** Reads the output of a process line by line, from its beginning. */
function linesOf(child: ChildProcessByStdio<null, Readable, null>): () => Promise<string> {
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return async () => {
    const next = await lines.next();
    if (next.done) throw new Error(`it ended (exit code ${child.exitCode}, signal ${child.signalCode})`);
    return next.value;
  };
}

async function take(watch: KvWatch, count: number): Promise<readonly WatchEvent[]> {
  const events: WatchEvent[] = [];
  while (events.length < count) {
    const { done, value } = await watch.next();
    if (done) throw new Error(`the watch ended after ${events.length} events`);
    events.push(value);
  }
  return events;
}
