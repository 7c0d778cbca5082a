import { ServiceError } from '@remora/base';
import { beforeEach, describe, expect, test } from 'vitest';
import { LeaseKeeper } from './lease-keeper.ts';

const LEASES = new Map([1n, 2n].map((id) => [id, { id, ttlS: 30 * Number(id) }]));

let nowMs = 0;
let calls: string[] = [];
const alive = new Set<bigint>();
const lease = {
  grant: async (ttl: unknown, { id = 0n }: { id?: bigint | undefined } = {}) => {
    if (alive.has(id)) throw new ServiceError('LEASE_EXISTS', 'it exists');
    alive.add(id);
    calls.push(`grant ${id} for ${ttl}`);
    return { id, ttlMs: Number(ttl) };
  },
  keepAlive: async (id: bigint) => {
    if (!alive.has(id)) throw new ServiceError('LEASE_NOT_FOUND', 'it has ended');
    calls.push(`renew ${id}`);
    return 1;
  },
};

let keeper: LeaseKeeper;
beforeEach(() => {
  [nowMs, calls] = [1_000, []];
  alive.clear();
  keeper = new LeaseKeeper(lease, LEASES, () => nowMs);
});

/** What is done at this time. */
async function at(timeMs: number, work: () => Promise<void>): Promise<readonly string[]> {
  [nowMs, calls] = [1_000 + timeMs, []];
  await work();
  return calls;
}

describe('a lease', () => {
  test('is granted with its TTL before its first key, and renewed after each third of it (LK1, LK2)', async () => {
    expect(await at(0, () => keeper.prepare([1n, 1n]))).toEqual(['grant 1 for 30000']);
    expect(await at(9_000, () => keeper.prepare([2n]))).toEqual(['grant 2 for 60000']);
    expect(await at(10_000, () => keeper.prepare([1n]))).toEqual(['renew 1']);
    expect(await at(19_000, () => keeper.prepare([]))).toEqual([]);
    expect(await at(29_000, () => keeper.prepare([]))).toEqual(['renew 1', 'renew 2']);
    expect(await at(29_100, () => keeper.finish())).toEqual(['renew 1', 'renew 2']);
  });

  test('that an earlier attempt granted is renewed at once', async () => {
    alive.add(1n);
    expect(await at(0, () => keeper.prepare([1n]))).toEqual(['renew 1']);
    expect(keeper.granted).toBe(1);
  });

  test('that ended is counted (LK3)', async () => {
    await keeper.prepare([1n, 2n]);
    alive.delete(2n);
    expect(await at(0, () => keeper.finish())).toEqual(['renew 1']);
    expect([keeper.granted, keeper.lost]).toEqual([1, 1]);
  });
});
