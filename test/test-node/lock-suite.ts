/**
 * Fifty tests of code that uses locks, as a user would write them, on one node in memory. The runner is a parameter:
 * Vitest runs them here, and node:test and Jest run them with the published packages (test/e2e).
 */
import assert from 'node:assert/strict';
import { type HeldLock, type RemoraClient, RemoraError } from 'remora';
import type { TestCluster, TestClusterOptions } from 'remora-server/testing';

export interface LockSuiteRunner {
  readonly test: (name: string, run: () => Promise<void>) => unknown;
  readonly beforeAll: (run: () => Promise<void>) => unknown;
  readonly afterAll: (run: () => Promise<void>) => unknown;
  readonly startTestCluster: (options?: TestClusterOptions) => Promise<TestCluster>;
}

/** What a test has: a client, two more that want the same, and a name that no other test uses. */
interface Case {
  readonly cluster: TestCluster;
  readonly one: RemoraClient;
  readonly two: RemoraClient;
  readonly three: RemoraClient;
  readonly name: string;
}

type Cases = Readonly<Record<string, (given: Case) => Promise<void>>>;

const FOREVER = { wait: '1h' } as const;

/** Declares the tests; returns how many there are. */
export function lockSuite({ test, beforeAll, afterAll, startTestCluster }: LockSuiteRunner): number {
  let cluster: TestCluster;
  beforeAll(async () => {
    cluster = await startTestCluster();
  });
  afterAll(() => cluster.stop());
  const cases = Object.entries({ ...EXCLUSIVE, ...LOST, ...byTtl(), ...SHARED, ...SEMAPHORES, ...OTHERS });
  for (const [name, run] of cases) {
    test(name, async () => {
      const [one, two, three] = [await cluster.connect(), await cluster.connect(), await cluster.connect()];
      try {
        await run({ cluster, one, two, three, name });
      } finally {
        await Promise.all([one, two, three].map((client) => client.close()));
      }
    });
  }
  return cases.length;
}

const rejectsWith = (promise: Promise<unknown>, code: string): Promise<void> =>
  assert.rejects(promise, (error) => error instanceof RemoraError && error.code === code);

/** Lets the promises that wait for a lock settle. */
const settle = ({ cluster }: Case): Promise<void> => cluster.advance(0);

const EXCLUSIVE: Cases = {
  'a free lock is granted': async ({ one, name }) => {
    assert.equal((await one.lock(name).acquire()).state, 'active');
  },
  'a taken lock is refused to those who do not wait': async ({ one, two, name }) => {
    await one.lock(name).acquire();
    await rejectsWith(two.lock(name).acquire({ wait: 0 }), 'LOCK_BUSY');
    assert.equal(await two.lock(name).tryAcquire(), undefined);
  },
  'a waiter is granted what was released': async ({ one, two, name }) => {
    const first = await one.lock(name).acquire();
    const waiting = two.lock(name).acquire(FOREVER);
    await first.release();
    assert.equal((await waiting).state, 'active');
  },
  'waiters are served in their order': async (given) => {
    const { one, two, three, name } = given;
    const first = await one.lock(name).acquire();
    const order: string[] = [];
    const wait = async (client: RemoraClient, who: string): Promise<void> => {
      const held = await client.lock(name).acquire(FOREVER);
      order.push(who);
      await held.release();
    };
    const second = wait(two, 'two');
    await settle(given);
    const third = wait(three, 'three');
    await settle(given);
    await first.release();
    await Promise.all([second, third]);
    assert.deepEqual(order, ['two', 'three']);
  },
  'a waiter gives up after its time': async ({ cluster, one, two, name }) => {
    await one.lock(name).acquire();
    const waiting = rejectsWith(two.lock(name).acquire({ wait: '5s' }), 'LOCK_TIMEOUT');
    await cluster.advance('6s');
    await waiting;
  },
  'a waiter that gave up leaves nothing in the queue': async ({ cluster, one, two, three, name }) => {
    const first = await one.lock(name).acquire();
    const gone = rejectsWith(two.lock(name).acquire({ wait: '5s' }), 'LOCK_TIMEOUT');
    await cluster.advance('6s');
    await gone;
    await first.release();
    assert.equal((await three.lock(name).acquire({ wait: 0 })).state, 'active');
  },
  'a waiter stops when its signal aborts': async (given) => {
    const { one, two, name } = given;
    await one.lock(name).acquire();
    const controller = new AbortController();
    const waiting = rejectsWith(two.lock(name).acquire({ ...FOREVER, signal: controller.signal }), 'CANCELED');
    await settle(given);
    controller.abort();
    await waiting;
  },
  'versions grow from holder to holder': async ({ one, two, name }) => {
    const first = await one.lock(name).run(({ version }) => version);
    assert.ok((await two.lock(name).run(({ version }) => version)) > first);
  },
  'run releases after its work': async ({ one, two, name }) => {
    assert.equal(await one.lock(name).run(() => 'done'), 'done');
    assert.ok((await two.lock(name).tryAcquire()) !== undefined);
  },
  'run releases when its work throws': async ({ one, two, name }) => {
    const failed = one.lock(name).run(() => {
      throw new Error('of the work');
    });
    await assert.rejects(failed, /of the work/);
    assert.ok((await two.lock(name).tryAcquire()) !== undefined);
  },
  'run releases when its work rejects after a while': async ({ cluster, one, two, name }) => {
    const failed = one.lock(name).run(async () => {
      await new Promise<void>((resolve) => cluster.clock.setTimer(30_000, resolve));
      throw new Error('late');
    });
    const rejected = assert.rejects(failed, /late/);
    await cluster.advance('31s');
    await rejected;
    assert.ok((await two.lock(name).tryAcquire()) !== undefined);
  },
  'a holder enters again, and releases as often': async ({ one, two, name }) => {
    const held = await one.lock(name).acquire();
    const again = await held.acquire();
    await again.release();
    assert.equal(await two.lock(name).tryAcquire(), undefined);
    await held.release();
    assert.ok((await two.lock(name).tryAcquire()) !== undefined);
  },
  'depthMax 1 turns re-entry off': async ({ one, name }) => {
    const held = await one.lock(name).acquire({ depthMax: 1 });
    await rejectsWith(held.acquire(), 'LOCK_DEPTH_EXCEEDED');
  },
  'two locks of one client are independent': async ({ one, two, name }) => {
    await one.lock(`${name}/a`).acquire();
    assert.ok((await two.lock(`${name}/b`).tryAcquire()) !== undefined);
  },
  'one name in two namespaces is two locks': async ({ one, two, name }) => {
    await one.lock(name, { namespace: 'a' }).acquire();
    assert.ok((await two.lock(name, { namespace: 'b' }).tryAcquire()) !== undefined);
  },
  'two acquires of one client exclude each other': async ({ one, name }) => {
    await one.lock(name).acquire();
    assert.equal(await one.lock(name).tryAcquire(), undefined);
  },
  'a client that closes releases what it holds': async ({ one, two, name }) => {
    await one.lock(name).acquire();
    const waiting = two.lock(name).acquire(FOREVER);
    await one.close();
    assert.equal((await waiting).state, 'active');
  },
  'everybody sees holder, waiters and data': async (given) => {
    const { one, two, three, name } = given;
    await one.lock(name).acquire({ data: 'by one' });
    two
      .lock(name)
      .acquire(FOREVER)
      .catch(() => {});
    await settle(given);
    const state = await three.locks.show(name);
    assert.deepEqual([state?.holders.length, state?.waiters.length], [1, 1]);
    assert.equal(state?.holders[0]?.data.toString(), 'by one');
  },
  'the next holder reads the data that were kept': async ({ one, two, name }) => {
    const first = await one.lock(name).acquire({ data: 'half done', keepData: true });
    await first.release();
    assert.equal((await two.lock(name).acquire()).previousData?.toString(), 'half done');
  },
  'a holder hears that somebody asks for the lock': async (given) => {
    const { one, two, name } = given;
    const held = await one.lock(name).acquire({ onRevoke: () => void held.release() });
    await settle(given);
    const waiting = two.lock(name).acquire(FOREVER);
    await two.lock(name).revoke({ wait: '5s' });
    assert.equal((await waiting).state, 'active');
  },
};

const LOST: Cases = {
  'an expired session passes its lock on': async ({ cluster, one, two, name }) => {
    const first = await one.lock(name).acquire();
    const waiting = two.lock(name).acquire(FOREVER);
    await cluster.expire(first);
    assert.ok((await waiting).version > first.version);
  },
  'the holder of an expired session hears of it': async ({ cluster, one, name }) => {
    const held = await one.lock(name).acquire();
    await cluster.expire(one);
    await cluster.advance('5s');
    assert.equal(held.signal.aborted, true);
    assert.throws(() => held.throwIfLost(), RemoraError);
  },
  'run aborts its signal when the lock is lost': async ({ cluster, one, name }) => {
    const work = one.lock(name).run(({ signal }) => {
      return new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
    });
    const rejected = rejectsWith(work, 'SESSION_EXPIRED');
    await cluster.advance(0);
    await cluster.expire(one);
    await cluster.advance('5s');
    await rejected;
  },
  'a guard refuses the late write of an earlier holder': async ({ cluster, one, two, three, name }) => {
    const guard = three.fence.guard();
    const first = await one.lock(name).acquire();
    await cluster.expire(first);
    const second = await two.lock(name).acquire();
    await guard.run(name, second.version, () => 'written');
    await rejectsWith(
      guard.run(name, first.version, () => 'too late'),
      'FENCED',
    );
  },
  'a key refuses the late write of an earlier holder': async ({ cluster, one, two, name }) => {
    const first = await one.lock(name).acquire();
    await cluster.expire(first);
    await two.lock(name).acquire();
    await rejectsWith(one.kv.put(name, 'too late', { fence: first }), 'FENCED');
  },
  'a lock survives the restart of the node': async ({ cluster, one, two, name }) => {
    const held = await one.lock(name).acquire();
    await cluster.restart();
    await cluster.advance('30s');
    assert.deepEqual([held.state, await two.lock(name).tryAcquire()], ['active', undefined]);
  },
  'a waiter survives the restart of the node': async ({ cluster, one, two, name }) => {
    const first = await one.lock(name).acquire();
    const waiting = two.lock(name).acquire(FOREVER);
    await cluster.restart();
    await cluster.advance('5s');
    await first.release();
    await cluster.advance('5s');
    assert.equal((await waiting).state, 'active');
  },
  'a lock survives a broken connection': async ({ cluster, one, name }) => {
    const held = await one.lock(name).acquire();
    cluster.disconnect(one);
    await cluster.advance('30s');
    assert.deepEqual([held.state, await held.check()], ['active', true]);
  },
  'the locks of an own session are lost without those of the client': async ({ cluster, one, name }) => {
    const session = await one.session();
    const [own, others] = [await session.lock(`${name}/a`).acquire(), await one.lock(`${name}/b`).acquire()];
    await cluster.expire(session);
    await cluster.advance('5s');
    assert.deepEqual([own.state, others.state], ['lost', 'active']);
  },
  'a forced release takes the lock from a client that hangs': async ({ cluster, one, two, name }) => {
    await one.lock(name).acquire();
    cluster.cutOff(one);
    await two.locks.forceRelease(name);
    assert.ok((await two.lock(name).tryAcquire()) !== undefined);
    cluster.reconnect(one);
  },
};

/** The same for sessions that live for a short, a usual and a long time. */
function byTtl(): Cases {
  const cases: Record<string, (given: Case) => Promise<void>> = {};
  for (const seconds of [1, 10, 60]) {
    const options = { ttl: `${seconds}s`, wait: '1h' } as const;
    cases[`with a TTL of ${seconds} s, a lock is held as long as its client lives`] = async ({
      cluster,
      one,
      name,
    }) => {
      const held = await one.lock(name).acquire(options);
      await cluster.advance(3 * seconds * 1_000);
      assert.equal(held.state, 'active');
    };
    cases[`with a TTL of ${seconds} s, a client that is cut off knows before the next is granted`] = async (given) => {
      const { cluster, one, two, name } = given;
      const held = await one.lock(name).acquire(options);
      const order: string[] = [];
      held.signal.addEventListener('abort', () => order.push('lost'));
      const waiting = two
        .lock(name)
        .acquire(FOREVER)
        .then(() => order.push('granted'));
      cluster.cutOff(one);
      await cluster.advance(2 * seconds * 1_000);
      await waiting;
      assert.deepEqual(order, ['lost', 'granted']);
      cluster.reconnect(one);
    };
    cases[`with a TTL of ${seconds} s, a short cut does no harm`] = async ({ cluster, one, name }) => {
      const held = await one.lock(name).acquire(options);
      cluster.cutOff(one);
      await cluster.advance(seconds * 400);
      cluster.reconnect(one);
      await cluster.advance(3 * seconds * 1_000);
      assert.deepEqual([held.state, await held.check()], ['active', true]);
    };
  }
  return cases;
}

const SHARED: Cases = {
  'readers share a lock': async ({ one, two, name }) => {
    await one.rwLock(name).read();
    assert.ok((await two.rwLock(name).tryRead()) !== undefined);
  },
  'a writer excludes readers and writers': async ({ one, two, name }) => {
    await one.rwLock(name).write();
    assert.deepEqual([await two.rwLock(name).tryRead(), await two.rwLock(name).tryWrite()], [undefined, undefined]);
  },
  'a writer waits for all readers': async (given) => {
    const { one, two, three, name } = given;
    const readers = [await one.rwLock(name).read(), await two.rwLock(name).read()];
    const writing = three.rwLock(name).write(FOREVER);
    await readers[0]?.release();
    await settle(given);
    assert.equal(await one.rwLock(name).tryRead(), undefined); // The writer is before it.
    await readers[1]?.release();
    assert.equal((await writing).state, 'active');
  },
  'the session of a reader expires for itself': async ({ cluster, one, two, three, name }) => {
    const readers = [await one.rwLock(name).read(), await two.rwLock(name).read()];
    await cluster.expire(one);
    await cluster.advance('5s');
    assert.deepEqual(states(readers), ['lost', 'active']);
    assert.equal(await three.rwLock(name).tryWrite(), undefined);
  },
};

const SEMAPHORES: Cases = {
  'a semaphore has as many holders as permits': async ({ one, two, three, name }) => {
    const permits = { permits: 2 };
    await one.semaphore(name, permits).acquire();
    await two.semaphore(name, permits).acquire();
    assert.equal(await three.semaphore(name, permits).tryAcquire(), undefined);
  },
  'an expired session gives its permits back': async ({ cluster, one, two, name }) => {
    await one.semaphore(name, { permits: 1 }).acquire();
    const waiting = two.semaphore(name, { permits: 1 }).acquire(FOREVER);
    await cluster.expire(one);
    assert.equal((await waiting).state, 'active');
  },
};

const OTHERS: Cases = {
  'the next candidate leads when the leader gives up': async ({ one, two, name }) => {
    const first = await one.election(name).campaign({ value: 'one' });
    const second = two.election(name).campaign({ value: 'two' });
    await first.release();
    assert.ok((await second).version > first.version);
    assert.equal((await one.election(name).leader())?.value.toString(), 'two');
  },
  'the next candidate leads when the leader dies': async ({ cluster, one, two, name }) => {
    const first = await one.election(name).campaign({ value: 'one' });
    const second = two.election(name).campaign({ value: 'two' });
    await cluster.expire(first);
    assert.equal((await second).state, 'active');
    await cluster.advance('5s');
    assert.equal(first.signal.aborted, true);
  },
  'several locks are acquired in any order without deadlock': async ({ one, two, name }) => {
    const names = [`${name}/a`, `${name}/b`];
    const both = [one.lockAll(names).run(() => 'one'), two.lockAll(names.toReversed()).run(() => 'two')];
    assert.deepEqual(await Promise.all(both), ['one', 'two']);
  },
  'a barrier lets its waiters pass when it is lifted': async (given) => {
    const { one, two, name } = given;
    const held = await one.barrier(name).hold();
    let passed = false;
    const waiting = two
      .barrier(name)
      .wait()
      .then(() => {
        passed = true;
      });
    await settle(given);
    assert.equal(passed, false);
    await held.release();
    await waiting;
  },
  'a key lives as long as the session that wrote it': async ({ cluster, one, two, name }) => {
    const session = await one.session();
    await one.kv.put(name, 'here', { lease: session.lease });
    assert.equal((await two.kv.get(name))?.value.toString(), 'here');
    await cluster.expire(session);
    assert.equal(await two.kv.get(name), undefined);
  },
};

function states(held: readonly HeldLock[]): readonly string[] {
  return held.map(({ state }) => state);
}
