/** `remora/migrate`: holds a lock in another system and in Remora, for services that move one by one. */
export { BothLocks, type BothLocksOptions, type BothOptions } from './migrate/both-locks.ts';
export { HeldBoth } from './migrate/held-both.ts';
export type { OtherLock, OtherLocks } from './migrate/other-locks.ts';
export { recipeLocks } from './migrate/recipe-locks.ts';
export { type RedisClient, redisLocks } from './migrate/redis-locks.ts';
