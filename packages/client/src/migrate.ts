/** `remora/migrate`: holds a lock in another system and in Remora, for services that move one by one. */
export { BothLocks, type BothLocksOptions, type BothOptions } from './migrate/both-locks.ts';
export type {
  EtcdClient,
  EtcdFound,
  EtcdGet,
  EtcdGetAll,
  EtcdIf,
  EtcdLease,
  EtcdPut,
} from './migrate/etcd-client.ts';
export { type EtcdLocksOptions, etcdLocks } from './migrate/etcd-locks.ts';
export { HeldBoth } from './migrate/held-both.ts';
export type { OtherLock, OtherLocks } from './migrate/other-locks.ts';
export { recipeLocks } from './migrate/recipe-locks.ts';
export { type RedisClient, redisLocks } from './migrate/redis-locks.ts';
export type { ZooKeeperClient, ZooKeeperDone } from './migrate/zookeeper-client.ts';
export { zooKeeperLocks } from './migrate/zookeeper-locks.ts';
