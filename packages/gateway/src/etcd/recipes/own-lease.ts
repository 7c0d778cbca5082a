import type { Random } from '@remora/base';
import { randomLeaseId } from '../lease-service.ts';
import type { BackendCalls } from './backend-calls.ts';

/** The lease is not renewed, as in etcd: its TTL bounds the lock or the leadership. */
const OWN_LEASE_TTL_MS = 60_000;

/**
 * Runs a recipe with the lease that its caller named, or with a new one if that is 0. The new lease is revoked if the
 * recipe fails, which deletes the keys that the recipe may have put.
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
