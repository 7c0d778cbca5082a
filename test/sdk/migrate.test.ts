import { ServiceError, taskContext } from '@remora/base';
import type { RemoraClient } from 'remora';
import { BothLocks, type BothOptions, type HeldBoth, type OtherLocks } from 'remora/migrate';
import { beforeEach, describe, expect, test } from 'vitest';
import { codeOf, World } from '../support/sdk-world.ts';

const TTL_MS = 3_000;

let world: World;
let client: RemoraClient;
beforeEach(async () => {
  world = new World();
  client = await world.client();
});

/** Another system, in memory: who holds what, and until when. */
class Other implements OtherLocks {
  readonly holders = new Map<string, { readonly owner: string; untilMs: number }>();
  asked = 0;
  /** It fails, as when it cannot be reached. */
  down = false;
  /** It does not answer. */
  hangs = false;
  readonly #unanswered: (() => void)[] = [];

  /** It answers what it was asked meanwhile, and all that it is asked from now on. */
  answer(): void {
    this.hangs = false;
    for (const go of this.#unanswered.splice(0)) go();
  }

  isHeld(name: string): boolean {
    return (this.holders.get(name)?.untilMs ?? 0) > world.clock.monotonicMs();
  }

  hold(name: string, forMs: number): void {
    this.holders.set(name, { owner: 'a service that has not moved', untilMs: world.clock.monotonicMs() + forMs });
  }

  async tryAcquire(name: string, { ttlMs, owner }: { readonly ttlMs: number; readonly owner: string }) {
    this.asked++;
    await this.#reach();
    if (this.isHeld(name)) return undefined;
    const hold = { owner, untilMs: world.clock.monotonicMs() + ttlMs };
    this.holders.set(name, hold);
    const isMine = (): boolean => this.isHeld(name) && this.holders.get(name) === hold;
    return {
      renew: async () => {
        await this.#reach();
        if (isMine()) hold.untilMs = world.clock.monotonicMs() + ttlMs;
        return isMine();
      },
      release: async () => {
        await this.#reach();
        if (isMine()) this.holders.delete(name);
      },
    };
  }

  async #reach(): Promise<void> {
    if (this.down) throw new Error('the other system cannot be reached');
    if (this.hangs) await new Promise<void>((resolve) => this.#unanswered.push(resolve));
  }
}

describe('a lock in both systems', () => {
  let other: Other;
  let both: BothLocks;
  beforeEach(() => {
    other = new Other();
    both = new BothLocks(client, other, { ttl: TTL_MS });
  });
  const acquire = (options: BothOptions = {}): Promise<HeldBoth> => world.until(both.acquire('l', options));

  test('is held in both, and free in both after its release', async () => {
    const held = await acquire();
    expect([other.isHeld('l'), await world.until(client.lock('l').tryAcquire())]).toEqual([true, undefined]);
    expect(await world.until(client.locks.check([{ name: 'l', version: held.version }]))).toEqual([true]);
    await world.until(held.release());
    expect([other.isHeld('l'), await world.until(client.locks.show('l'))]).toEqual([false, undefined]);
  });

  test('may have another name there', async () => {
    both = new BothLocks(client, other, { otherName: (name) => `lock:${name}` });
    await acquire();
    expect([...other.holders.keys()]).toEqual(['lock:l']);
  });

  test('waits for a service that has not moved', async () => {
    other.hold('l', 2_000);
    const waiting = both.acquire('l');
    await world.run(1_500);
    expect(await codeOf(Promise.race([waiting, Promise.reject(new Error('it waits'))]))).toBe('Error: it waits');
    const held = await world.until(waiting);
    expect(held.signal.aborted).toBe(false);
  });

  test('waits for a service that has moved, without asking the other system', async () => {
    const moved = await world.until(client.lock('l').acquire());
    const waiting = both.acquire('l');
    await world.run(1_500);
    expect(other.asked).toBe(0);
    await world.until(moved.release());
    await world.until(waiting);
    expect(other.isHeld('l')).toBe(true);
  });

  test.each([
    { name: 'at once', options: { wait: 0 }, code: 'LOCK_BUSY' },
    { name: 'after its wait', options: { wait: '1s' }, code: 'LOCK_TIMEOUT' },
    { name: 'when it is aborted', options: { signal: AbortSignal.abort() }, code: 'CANCELED' },
  ] as const)('that is taken there is given up $name, and Remora is free then', async ({ options, code }) => {
    other.hold('l', 60_000);
    expect(await world.until(codeOf(both.acquire('l', options)))).toBe(code);
    expect(await world.until(client.locks.show('l'))).toBeUndefined();
  });

  test('that cannot be asked for there is given up with that error', async () => {
    other.down = true;
    expect(await world.until(codeOf(both.acquire('l')))).toBe('Error: the other system cannot be reached');
    expect(await world.until(client.locks.show('l'))).toBeUndefined();
  });

  test.each([
    { name: 'before its wait is over', options: { wait: '1s' }, code: 'LOCK_TIMEOUT', afterMs: 1_000 },
    { name: 'within its TTL', options: { wait: 2 * TTL_MS }, code: 'UNAVAILABLE', afterMs: TTL_MS },
    { name: 'within its TTL, without a wait', options: { wait: 0 }, code: 'UNAVAILABLE', afterMs: TTL_MS },
    { name: 'within its TTL, with any wait', options: {}, code: 'UNAVAILABLE', afterMs: TTL_MS },
  ] as const)('that is not answered there $name is given up, and released when it is', async (row) => {
    other.hangs = true;
    const outcome = codeOf(both.acquire('l', row.options));
    await world.run(row.afterMs - 50);
    expect(await Promise.race([outcome, 'it waits'])).toBe('it waits');
    expect(await world.until(outcome)).toBe(row.code);
    expect(await world.until(client.locks.show('l'))).toBeUndefined();
    other.answer();
    await world.run(100);
    expect(other.isHeld('l')).toBe(false);
  });

  test('that is not answered there is given up when it is aborted', async () => {
    other.hangs = true;
    const stop = new AbortController();
    const outcome = codeOf(both.acquire('l', { signal: stop.signal }));
    await world.run(500);
    stop.abort();
    expect(await world.until(outcome)).toBe('CANCELED');
    expect(await world.until(client.locks.show('l'))).toBeUndefined();
  });

  test('whose release is not answered there is released here within its TTL, and rejects', async () => {
    const held = await acquire();
    other.hangs = true;
    const released = codeOf(held.release());
    await world.run(TTL_MS - 50);
    expect(await world.until(client.locks.show('l'))).toBeDefined();
    expect(await world.until(released)).toBe('UNAVAILABLE');
    expect(await world.until(client.locks.show('l'))).toBeUndefined();
  });

  test('is renewed in both for as long as it is held', async () => {
    const held = await acquire();
    await world.run(20 * TTL_MS);
    expect([other.isHeld('l'), held.signal.aborted]).toEqual([true, false]);
    held.throwIfLost();
  });

  test('that somebody takes away there is lost', async () => {
    const held = await acquire();
    other.holders.delete('l');
    await world.run(TTL_MS);
    expect(held.signal.aborted).toBe(true);
    expect(held.signal.reason).toEqual(expect.objectContaining({ code: 'LOCK_NOT_HELD' }));
    expect(() => held.throwIfLost()).toThrow(ServiceError);
  });

  test('that somebody takes away here is lost', async () => {
    const held = await acquire();
    await world.until(client.locks.forceRelease('l'));
    await world.run(100);
    expect(held.signal.aborted).toBe(true);
  });

  test('that cannot be renewed there is lost before it ends there, and not before it has to be', async () => {
    const held = await acquire();
    other.down = true;
    while (!held.signal.aborted) {
      expect(other.isHeld('l')).toBe(true);
      await world.run(5);
    }
    expect(world.clock.monotonicMs()).toBeGreaterThan(TTL_MS / 2);
  });

  test('outlives an outage there that is shorter than its TTL', async () => {
    const held = await acquire();
    other.down = true;
    await world.run(TTL_MS / 2);
    other.down = false;
    await world.run(5 * TTL_MS);
    expect(held.signal.aborted).toBe(false);
  });

  test('that cannot be released there is released here all the same, and rejects', async () => {
    const held = await acquire();
    other.down = true;
    expect(await world.until(codeOf(held.release()))).toBe('Error: the other system cannot be reached');
    expect(await world.until(client.locks.show('l'))).toBeUndefined();
  });

  test('runs work, and gives its result', async () => {
    const seen = await world.until(
      both.run('l', { wait: '5s' }, ({ version, signal }) => [version > 0, signal.aborted]),
    );
    expect([seen, other.isHeld('l')]).toEqual([[true, false], false]);
  });

  test('refuses a task that would wait for itself, of a client with reentrant locks too', async () => {
    const tracking = await world.client({ reentrant: true }, 1, { task: taskContext });
    const mine = new BothLocks(tracking, other);
    const inner = mine.run('l', () => mine.run('l', () => 'entered'));
    expect(await world.until(codeOf(inner))).toBe('LOCK_SELF_WAIT');
    const isFree = await world.until(tracking.lock('l').run({ wait: 0 }, () => true));
    expect([other.isHeld('l'), isFree]).toEqual([false, true]);
  });

  test('excludes all three kinds of services from one another', async () => {
    let inside = 0;
    let most = 0;
    const work = async (): Promise<void> => {
      most = Math.max(most, ++inside);
      await new Promise<void>((resolve) => world.clock.setTimer(40, resolve));
      inside--;
    };
    const old = async (): Promise<void> => {
      for (;;) {
        const held = await other.tryAcquire('l', { ttlMs: TTL_MS, owner: 'old' });
        if (held === undefined) await new Promise<void>((resolve) => world.clock.setTimer(10, resolve));
        else return work().then(() => held.release());
      }
    };
    // While services move, no service that uses the other system alone runs beside one that uses Remora alone.
    const first = [old(), both.run('l', work), old(), both.run('l', work), both.run('l', work)];
    await world.until(Promise.all(first));
    const second = [both.run('l', work), client.lock('l').run(work), both.run('l', work), client.lock('l').run(work)];
    await world.until(Promise.all(second));
    expect([most, inside]).toEqual([1, 0]);
  });
});

test('what is no client is refused', () => {
  expect(() => new BothLocks({} as RemoraClient, new Other())).toThrow(
    expect.objectContaining({ code: 'INVALID_ARGUMENT' }),
  );
});
