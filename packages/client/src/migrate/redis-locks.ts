import { requireCalls } from './migrate-errors.ts';
import type { OtherLocks } from './other-locks.ts';

/** The calls of a client of Redis that the locks need, as `ioredis` has them. */
export interface RedisClient {
  set(key: string, value: string, px: 'PX', ttlMs: number, nx: 'NX'): Promise<unknown>;
  eval(script: string, keys: number, ...args: (string | number)[]): Promise<unknown>;
}

const RENEW = `if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('pexpire', KEYS[1], ARGV[2])`;
const RELEASE = `if redis.call('get', KEYS[1]) ~= ARGV[1] then return 0 end return redis.call('del', KEYS[1])`;

/**
 * Locks of one Redis server, each a key that exists while the lock is held: `SET key value NX PX ttl`. So they exclude
 * services that do the same, and those that use redlock with this one server.
 */
export function redisLocks(redis: RedisClient): OtherLocks {
  requireCalls('redisLocks', 'a client of ioredis', redis, ['set', 'eval']);
  return {
    async tryAcquire(name, { ttlMs, owner }) {
      if ((await redis.set(name, owner, 'PX', ttlMs, 'NX')) !== 'OK') return undefined;
      return {
        renew: async () => (await redis.eval(RENEW, 1, name, owner, ttlMs)) === 1,
        release: async () => void (await redis.eval(RELEASE, 1, name, owner)),
      };
    },
  };
}
