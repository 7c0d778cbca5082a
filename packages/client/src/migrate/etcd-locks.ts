import { lockForm } from '../options/option-kinds.ts';
import { checkOptions, optionSet } from '../options/options.ts';
import type { EtcdClient, EtcdFound, EtcdLease } from './etcd-client.ts';
import {
  type EtcdKey,
  type EtcdPort,
  type EtcdPortLease,
  heldOrRevoked,
  lockOfKey,
  recipeOver,
} from './etcd-recipe.ts';
import { requireCalls } from './migrate-errors.ts';
import type { OtherLocks } from './other-locks.ts';

export interface EtcdLocksOptions {
  /**
   * How the other services lock. `recipe`: as `etcdctl lock` and clientv3's `concurrency` do, by a key `NAME/LEASE`
   * for each holder and waiter. `etcd3`: as `lock(NAME)` of the library etcd3 does, by the key `NAME` itself. The two
   * do not exclude each other. Default `recipe`.
   */
  readonly as?: 'recipe' | 'etcd3' | undefined;
}

export const ETCD_LOCKS_OPTIONS = optionSet<EtcdLocksOptions>('locks of etcd', { as: lockForm });

/**
 * Locks of an etcd cluster. Its TTLs are whole seconds: that of the lock is rounded up, so a lock whose holder has died
 * may stay for up to a second longer than `ttl`.
 */
export function etcdLocks(etcd: EtcdClient, options: EtcdLocksOptions = {}): OtherLocks {
  requireCalls('etcdLocks', 'a client of etcd3', etcd, ['lease', 'get', 'getAll', 'if']);
  checkOptions(ETCD_LOCKS_OPTIONS, options);
  return options.as === 'etcd3' ? locksOfEtcd3(etcd) : recipeOver(portOf(etcd));
}

/** The key `NAME`: the transaction that creates it takes the lock. */
function locksOfEtcd3(etcd: EtcdClient): OtherLocks {
  const port = portOf(etcd);
  return {
    async tryAcquire(name, { ttlMs }) {
      if ((await port.get(name)) !== undefined) return undefined;
      const lease = await grant(etcd, ttlMs);
      return heldOrRevoked(lease, async () => {
        const createRevision = await lease.create(name);
        return createRevision === undefined ? undefined : lockOfKey(port, lease, { key: name, createRevision });
      });
    },
  };
}

function portOf(etcd: EtcdClient): EtcdPort {
  return {
    oldest: async (prefix) => first(await etcd.getAll().prefix(prefix).sort('Create', 'Ascend').limit(1).exec()),
    async get(key) {
      const found = first(await etcd.get(key).exec());
      return found && { ...found, key }; // A namespace of etcd3 leaves its prefix in the answer.
    },
    grant: (ttlMs) => grant(etcd, ttlMs),
  };
}

function first({ kvs }: EtcdFound): EtcdKey | undefined {
  const [found] = kvs;
  return found && { key: Buffer.from(found.key).toString(), createRevision: found.create_revision };
}

interface Granted extends EtcdPortLease {
  /** Puts the key if it does not exist. Resolves to its create revision, or to undefined if it exists. */
  create(key: string): Promise<string | undefined>;
}

/** The lease ends unless the lock is renewed: the client does not renew it by itself. */
async function grant(etcd: EtcdClient, ttlMs: number): Promise<Granted> {
  const lease = etcd.lease(Math.ceil(ttlMs / 1_000), { autoKeepAlive: false });
  const id = BigInt(await lease.grant());
  return {
    id,
    put: async (key) => void (await lease.put(key).value('').exec()),
    async create(key) {
      const put = lease.put(key).value('');
      const { succeeded, header } = await etcd.if(key, 'Create', '==', 0).then(put).commit();
      return succeeded ? header.revision : undefined;
    },
    keepAlive: () => keepAlive(lease),
    revoke: () => lease.revoke(),
  };
}

async function keepAlive(lease: EtcdLease): Promise<boolean> {
  try {
    await lease.keepaliveOnce();
    return true;
  } catch (error) {
    if (lease.revoked()) return false;
    throw error;
  }
}
