import type { Redis } from 'ioredis';
import { type FencedStore, OutdatedError } from './fenced-store.ts';

/** Writes if there is a value, and returns the value. Redis runs a script in one step. */
const SCRIPT = `
  local fence = tonumber(redis.call('HGET', KEYS[1], 'fence') or 0)
  if tonumber(ARGV[1]) < fence then return false end
  redis.call('HSET', KEYS[1], 'fence', ARGV[1])
  if ARGV[2] then redis.call('HSET', KEYS[1], 'value', ARGV[2]) end
  return redis.call('HGET', KEYS[1], 'value')`;

/** A hash with the value and its fence, and a script that compares. */
export class RedisStore implements FencedStore {
  readonly #redis: Redis;

  constructor(redis: Redis) {
    this.#redis = redis;
  }

  async read(id: string, version: number): Promise<number> {
    return Number(await this.#run(id, version));
  }

  async write(id: string, value: number, version: number): Promise<void> {
    await this.#run(id, version, value);
  }

  async create(id: string, value: number): Promise<void> {
    await this.#redis.hset(id, { value, fence: 0 });
  }

  async close(): Promise<void> {
    await this.#redis.quit();
  }

  async #run(id: string, version: number, ...value: readonly number[]): Promise<unknown> {
    const answer = await this.#redis.eval(SCRIPT, 1, id, version, ...value);
    if (answer === null) throw new OutdatedError(id, version);
    return answer;
  }
}
