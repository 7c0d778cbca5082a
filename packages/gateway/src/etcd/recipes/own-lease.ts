import type { Random } from '@remora/base';
import { randomLeaseId } from '../lease-service.ts';
import type { BackendCalls } from './backend-calls.ts';

/** Nobody renews it, as in etcd: it is an upper bound for the lock or the leadership. */
const OWN_LEASE_TTL_MS = 60_000;

/**
 * Runs a recipe under the lease that its caller named, or under one of its own when that is 0. That one ends at once when
 * the recipe fails, and takes along what may have been put under it.
 */
export async function underLease<Result>(
  { calls, random }: { readonly calls: BackendCalls; readonly random: Random },
  named: bigint,
  recipe: (lease: bigint) => Promise<Result>,
): Promise<Result> {
  if (named !== 0n) return recipe(named);
  const id = randomLeaseId(random);
  await calls.command({ type: 'leaseGrant', id, ttlMs: OWN_LEASE_TTL_MS, attributes: {} }, 'leaseGrant');
  try {
    return await recipe(id);
  } catch (error) {
    await calls.command({ type: 'leaseRevoke', id, incarnation: 0 }, 'leaseRevoke').catch(() => {});
    throw error;
  }
}
