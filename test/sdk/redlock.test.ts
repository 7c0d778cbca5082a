/** What `remora/redlock` does in addition to the library whose API it has, and what only virtual time can show. */
import { SeededRandom } from '@remora/base';
import { validityMs } from '@remora/lock';
import type { RemoraClient } from 'remora';
import { ExecutionError, type Lock, Redlock, ResourceLockedError, type Settings } from 'remora/redlock';
import { beforeEach, describe, expect, test } from 'vitest';
import { ATTEMPTS_KEPT_MAX } from '../../packages/client/src/redlock/attempts.ts';
import { ttlMsFor } from '../../packages/client/src/redlock/held.ts';
import { DEFAULT_SETTINGS, pauseMs } from '../../packages/client/src/redlock/settings.ts';
import { codeOf, GATEWAYS, World } from '../support/sdk-world.ts';

let world: World;
let client: RemoraClient;
let redlock: Redlock;
beforeEach(async () => {
  world = new World();
  client = await world.client({ requestTimeout: '1s' });
  redlock = new Redlock([client]);
});

const LONG_MS = 60_000;

async function acquire(resources: readonly string[], settings: Partial<Settings> = {}, ms = LONG_MS): Promise<Lock> {
  return world.until(redlock.acquire([...resources], ms, settings));
}

/** The error with which an operation fails. */
async function failure(operation: Promise<unknown>): Promise<ExecutionError> {
  const error: unknown = await world.until(operation.then(() => 'fulfilled')).catch((caught: unknown) => caught);
  if (error instanceof ExecutionError) return error;
  throw new Error(`it ended otherwise: ${String(error)}`);
}

async function votesAgainst({ attempts }: Pick<Lock, 'attempts'>): Promise<readonly (Error | undefined)[]> {
  return (await Promise.all(attempts)).map((stats) => stats.votesAgainst.get(client));
}

describe('fencing versions', () => {
  test('a lock has one for each resource, and the next lock has higher ones', async () => {
    const first = await acquire(['b', 'a']);
    expect(first.versions).toHaveLength(2);
    expect(first.version).toBe(first.versions[0]);
    const checks = ['b', 'a'].map((name, at) => ({ name, version: first.versions[at] ?? 0 }));
    expect(await world.until(client.locks.check(checks))).toEqual([true, true]);
    await world.until(first.release());
    expect(await world.until(client.locks.check(checks))).toEqual([false, false]);
    const second = await acquire(['b', 'a']);
    expect(second.versions.map((version, at) => version > (first.versions[at] ?? 0))).toEqual([true, true]);
  });

  test('an extension keeps it, and a lock made by hand has none', async () => {
    const lock = await acquire(['a']);
    const longer = await world.until(lock.extend(LONG_MS));
    expect(longer.version).toBe(lock.version);
    const { Lock: Made } = await import('remora/redlock');
    expect(new Made(redlock, ['a'], lock.value, [], longer.expiration).version).toBe(0);
  });

  test('using passes them to its routine', async () => {
    const seen = await world.until(redlock.using(['a', 'b'], LONG_MS, async (_, { versions }) => versions));
    expect(seen).toHaveLength(2);
    expect(Math.min(...seen)).toBeGreaterThan(0);
  });
});

describe('locks of redlock and of the SDK', () => {
  test('exclude each other', async () => {
    const lock = await acquire(['a']);
    expect(await world.until(client.lock('a').tryAcquire())).toBeUndefined();
    await world.until(lock.release());
    const held = await world.until(client.lock('a').acquire());
    const { attempts } = await failure(redlock.acquire(['a'], LONG_MS, { retryCount: 0 }));
    expect(await votesAgainst({ attempts })).toEqual([expect.any(ResourceLockedError)]);
    await world.until(held.release());
  });

  test('a name that is in use as a semaphore is refused, without another attempt', async () => {
    await world.until(client.semaphore('a', { permits: 2 }).acquire());
    const { attempts } = await failure(redlock.acquire(['a'], LONG_MS));
    expect(await votesAgainst({ attempts })).toEqual([expect.objectContaining({ code: 'LOCK_KIND_MISMATCH' })]);
  });
});

test('waiters of one resource are granted it in the order of their calls', async () => {
  const order: number[] = [];
  const first = await acquire(['a']);
  const waiters = [1, 2, 3].map(async (n) => {
    const lock = await redlock.acquire(['a'], LONG_MS, { retryCount: 100, retryDelay: 500 });
    order.push(n);
    await lock.release();
  });
  await world.run(1_000);
  expect(order).toEqual([]);
  await world.until(first.release());
  await world.until(Promise.all(waiters));
  expect(order).toEqual([1, 2, 3]);
});

test('a waiter gives up when all pauses between its attempts are over', async () => {
  await acquire(['a']);
  const beganMs = world.clock.monotonicMs();
  const { attempts } = await failure(
    redlock.acquire(['a'], LONG_MS, { retryCount: 4, retryDelay: 300, retryJitter: 0 }),
  );
  expect(attempts).toHaveLength(5);
  expect(world.clock.monotonicMs() - beganMs).toBeGreaterThanOrEqual(1_200);
  expect(world.clock.monotonicMs() - beganMs).toBeLessThan(1_400);
});

test('without a limit of attempts, the last thousand are kept', async () => {
  const first = await acquire(['a']);
  let failed = 0;
  redlock.on('error', () => failed++);
  const waiting = redlock.acquire(['a'], LONG_MS, { retryCount: -1, retryDelay: 5, retryJitter: 0 });
  while (failed < ATTEMPTS_KEPT_MAX + 10) await world.run(500);
  await world.until(first.release());
  const { attempts } = await world.until(waiting);
  expect(attempts).toHaveLength(ATTEMPTS_KEPT_MAX);
  expect((await attempts.at(-1))?.votesFor).toEqual(new Set([client]));
});

test('a lock is held in the cluster at least until its expiration, and not much longer', async () => {
  for (const durationMs of [1, 50, 100, 500, 1_000, 30_000, 3_600_000]) {
    const wallMs = world.clock.wallMs();
    const lock = await acquire([`of ${durationMs} ms`], {}, durationMs);
    const leftMs = lock.expiration - wallMs;
    expect(leftMs).toBeGreaterThanOrEqual(Math.floor(durationMs * 0.99) - 3);
    const [ttlMs] = world.backend.ttlsMs().slice(-1);
    expect(validityMs(ttlMs ?? 0)).toBeGreaterThanOrEqual(durationMs);
    expect(ttlMs).toBeLessThanOrEqual(Math.max(100, Math.min(durationMs * 1.25, durationMs * 1.12 + 60) + 4));
    expect(ttlMs).toBe(ttlMsFor(durationMs));
  }
});

test('pauses stay within the jitter, and never below 0', () => {
  const random = new SeededRandom(1);
  const rows = [DEFAULT_SETTINGS, { ...DEFAULT_SETTINGS, retryDelay: 20 }, { ...DEFAULT_SETTINGS, retryJitter: 0 }];
  for (const settings of rows) {
    const pauses = Array.from({ length: 2_000 }, () => pauseMs(settings, random));
    const { retryDelay, retryJitter } = settings;
    expect(Math.min(...pauses)).toBe(Math.max(0, retryDelay - retryJitter));
    expect(Math.max(...pauses)).toBe(retryDelay + retryJitter);
  }
});

describe('using', () => {
  test('the signal aborts when the lock is taken by force, before an extension is due', async () => {
    const used = redlock.using(['a', 'b'], 3_600_000, async (signal) => {
      await client.locks.forceRelease('b');
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      return signal.error;
    });
    const { attempts } = await failure(used); // By its release.
    expect(await votesAgainst({ attempts })).toEqual([expect.any(ResourceLockedError)]);
    expect(world.clock.monotonicMs()).toBeLessThan(60_000);
  });

  test('the lock outlives an outage that is shorter than what is left of it', async () => {
    const settings = { automaticExtensionThreshold: 8_000, retryCount: 0 };
    const used = redlock.using(['a'], 10_000, settings, async (signal) => {
      await new Promise<void>((resolve) => world.clock.setTimer(30_000, resolve));
      return signal.aborted;
    });
    await world.run(1_000);
    for (const address of GATEWAYS) world.isolated.add(address);
    await world.run(5_000);
    world.isolated.clear();
    expect(await world.until(used)).toBe(false);
  });

  test('the signal aborts when the cluster does not answer until the lock has expired', async () => {
    const used = redlock.using(['a'], 10_000, { automaticExtensionThreshold: 8_000, retryCount: 0 }, async (signal) => {
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      return [signal.error instanceof Error, signal.reason === signal.error];
    });
    let result: unknown;
    const ended = used.catch((error: unknown) => {
      result = error;
    });
    await world.run(1_000);
    for (const address of GATEWAYS) world.isolated.add(address);
    await world.until(ended);
    expect(result).toBeInstanceOf(ExecutionError);
  });
});

describe('a cluster that does not answer', () => {
  test('is asked again, and the acquire succeeds when it is back', async () => {
    for (const address of GATEWAYS) world.isolated.add(address);
    const acquiring = redlock.acquire(['a'], LONG_MS, { retryCount: 20 });
    await world.run(5_000);
    world.isolated.clear();
    const votes = await votesAgainst(await world.until(acquiring));
    expect(votes.length).toBeGreaterThan(1);
    expect(votes.at(-1)).toBeUndefined();
    expect(votes[0]).not.toBeInstanceOf(ResourceLockedError);
  });

  test('a release that was applied unseen counts as one', async () => {
    const lock = await acquire(['a']);
    world.backend.onApplied = ({ type }) => {
      // The release was applied; its answer is lost, whichever gateway is asked.
      if (type === 'lock') for (const address of GATEWAYS) world.freeze(address);
    };
    const releasing = lock.release();
    await world.run(3_000);
    world.backend.onApplied = () => {};
    for (const address of GATEWAYS) world.thaw(address);
    const votes = await votesAgainst(await world.until(releasing));
    expect(votes.length).toBeGreaterThan(1);
    expect(votes.at(-1)).toBeUndefined();
    expect(await world.until(client.locks.show('a'))).toBeUndefined();
  });

  test('a client that is closed is not asked again', async () => {
    await world.until(redlock.quit());
    const { attempts } = await failure(redlock.acquire(['a'], LONG_MS, { retryCount: 10 }));
    expect(await votesAgainst({ attempts })).toEqual([expect.objectContaining({ code: 'CANCELED' })]);
  });
});

test('nothing keeps the process alive once all is released', async () => {
  const before = world.held;
  const lock = await acquire(['a']);
  await failure(redlock.acquire(['a', 'b'], LONG_MS, { retryCount: 2 }));
  await failure(redlock.acquire(['a'], LONG_MS, { retryCount: 2 }));
  await world.until(lock.release());
  await world.run(1_000);
  expect(world.held).toBe(before);
  expect(world.backend.sessions).toBe(0);
});

test.each([{ clients: [] }, { clients: [{}] }, { clients: undefined }, { clients: 5 }])(
  'an instance of $clients is refused',
  async ({ clients }) => {
    const make = async (): Promise<Redlock> => new Redlock(clients as never);
    expect(await codeOf(make())).toBe('INVALID_ARGUMENT');
  },
);
