import type { RemoraClient } from '../client.ts';
import { requesterOf } from '../client-requester.ts';
import { type EtcdPort, type EtcdPortLease, recipeOver } from './etcd-recipe.ts';
import { notAClient } from './migrate-errors.ts';
import type { OtherLocks } from './other-locks.ts';

/**
 * Locks of etcd's recipe on a Remora cluster, as `etcdctl lock` and clientv3's `concurrency` take them: a key
 * `NAME/LEASE` for each holder and waiter, of which the oldest holds the lock. So services that use the recipe and
 * services that use Remora's own locks exclude one another.
 */
export function recipeLocks(remora: RemoraClient): OtherLocks {
  if (requesterOf(remora) === undefined) throw notAClient('recipeLocks');
  return recipeOver(portOf(remora));
}

function portOf(remora: RemoraClient): EtcdPort {
  return {
    async oldest(prefix) {
      const sort = { by: 'createRevision', order: 'ascend' } as const;
      const { kvs } = await remora.kv.range({ prefix }, { sort, limit: 1 });
      const [first] = kvs;
      return first && { key: first.key.toString(), createRevision: first.createRevision };
    },
    async get(key) {
      const found = await remora.kv.get(key);
      return found && { key, createRevision: found.createRevision };
    },
    async grant(ttlMs) {
      const { id } = await remora.lease.grant(ttlMs);
      return leaseOf(remora, id);
    },
  };
}

function leaseOf(remora: RemoraClient, id: bigint): EtcdPortLease {
  return {
    id,
    put: async (key) => void (await remora.kv.put(key, '', { lease: id })),
    async keepAlive() {
      try {
        await remora.lease.keepAlive(id);
        return true;
      } catch (error) {
        if (isGone(error)) return false;
        throw error;
      }
    },
    async revoke() {
      await remora.lease.revoke(id).catch((error: unknown) => {
        if (!isGone(error)) throw error;
      });
    },
  };
}

function isGone(error: unknown): boolean {
  return error instanceof Error && Reflect.get(error, 'code') === 'LEASE_NOT_FOUND';
}
