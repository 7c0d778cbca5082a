import type { RemoraClient } from '../client.ts';
import type { OtherLock, OtherLocks } from './other-locks.ts';

/**
 * Locks of etcd's recipe on a Remora cluster, as `etcdctl lock` and clientv3's `concurrency` take them: a key
 * `NAME/LEASE` for each holder and waiter, of which the oldest holds the lock. So services that use the recipe and
 * services that use Remora's own locks exclude one another.
 */
export function recipeLocks(remora: RemoraClient): OtherLocks {
  return {
    async tryAcquire(name, { ttlMs }) {
      if ((await oldest(remora, name)) !== undefined) return undefined;
      const { id } = await remora.lease.grant(ttlMs);
      const lock = recipeLock(remora, `${name}/${BigInt.asUintN(64, id).toString(16)}`, id);
      try {
        await lock.enter();
        // Whoever was first among those who found it free.
        if ((await oldest(remora, name)) === lock.key) return lock;
      } catch (error) {
        await lock.release().catch(() => {}); // It ends with its lease otherwise.
        throw error;
      }
      await lock.release();
      return undefined;
    },
  };
}

async function oldest(remora: RemoraClient, name: string): Promise<string | undefined> {
  const sort = { by: 'createRevision', order: 'ascend' } as const;
  const { kvs } = await remora.kv.range({ prefix: `${name}/` }, { sort, limit: 1 });
  return kvs[0]?.key.toString();
}

interface RecipeLock extends OtherLock {
  readonly key: string;
  enter(): Promise<void>;
}

function recipeLock(remora: RemoraClient, key: string, lease: bigint): RecipeLock {
  let revision = 0;
  return {
    key,
    async enter() {
      ({ revision } = await remora.kv.put(key, '', { lease }));
    },
    async renew() {
      try {
        await remora.lease.keepAlive(lease);
      } catch (error) {
        if (isGone(error)) return false;
        throw error;
      }
      // A lease outlives a key that somebody has deleted.
      return (await remora.kv.get(key))?.createRevision === revision;
    },
    async release() {
      await remora.lease.revoke(lease).catch((error: unknown) => {
        if (!isGone(error)) throw error;
      });
    },
  };
}

function isGone(error: unknown): boolean {
  return error instanceof Error && Reflect.get(error, 'code') === 'LEASE_NOT_FOUND';
}
