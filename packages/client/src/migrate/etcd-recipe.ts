/**
 * The lock recipe of etcd, over the few calls that it needs.
 *
 * ER1. A holder or waiter is a key `NAME/LEASE` with that lease, as `etcdctl lock` and clientv3's `concurrency` put it.
 *      The oldest key below `NAME/` holds the lock.
 * ER2. A key that was the oldest holds the lock for as long as it exists with the same create revision.
 */
import type { OtherLock, OtherLocks } from './other-locks.ts';

export interface EtcdKey {
  readonly key: string;
  readonly createRevision: number | string;
}

/** Reads are never stale. */
export interface EtcdPort {
  /** The oldest key with this prefix. */
  oldest(prefix: string): Promise<EtcdKey | undefined>;
  get(key: string): Promise<EtcdKey | undefined>;
  grant(ttlMs: number): Promise<EtcdPortLease>;
}

export interface EtcdPortLease {
  readonly id: bigint;
  /** Puts a key without a value that ends with the lease. */
  put(key: string): Promise<void>;
  /** Resolves to false if the lease has ended. */
  keepAlive(): Promise<boolean>;
  /** Resolves also if the lease has ended. */
  revoke(): Promise<void>;
}

export function recipeOver(port: EtcdPort): OtherLocks {
  return {
    async tryAcquire(name, { ttlMs }) {
      const prefix = `${name}/`;
      if ((await port.oldest(prefix)) !== undefined) return undefined;
      const lease = await port.grant(ttlMs);
      return heldOrRevoked(lease, async () => {
        const key = prefix + BigInt.asUintN(64, lease.id).toString(16);
        await lease.put(key);
        // Several may have found it free.
        const first = await port.oldest(prefix);
        return first?.key === key ? lockOfKey(port, lease, first) : undefined;
      });
    },
  };
}

/** Revokes the lease unless the attempt succeeds. */
export async function heldOrRevoked(
  lease: EtcdPortLease,
  attempt: () => Promise<OtherLock | undefined>,
): Promise<OtherLock | undefined> {
  let lock: OtherLock | undefined;
  try {
    lock = await attempt();
    return lock;
  } finally {
    if (lock === undefined) await lease.revoke().catch(() => {}); // It expires otherwise: nothing renews it.
  }
}

/** A lock that is held for as long as this key exists. */
export function lockOfKey(port: EtcdPort, lease: EtcdPortLease, held: EtcdKey): OtherLock {
  return {
    async renew() {
      if (!(await lease.keepAlive())) return false;
      // ER2. A lease outlives a key that somebody has deleted.
      return (await port.get(held.key))?.createRevision === held.createRevision;
    },
    release: () => lease.revoke(),
  };
}
