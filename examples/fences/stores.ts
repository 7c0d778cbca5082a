import { connectPostgres, connectRedis } from '../support/servers.ts';
import type { FencedStore } from './fenced-store.ts';
import { PostgresStore } from './postgres-store.ts';
import { RedisStore } from './redis-store.ts';

export const STORES: Readonly<Record<string, () => Promise<FencedStore>>> = {
  PostgreSQL: async () => new PostgresStore(await connectPostgres()),
  Redis: async () => new RedisStore(await connectRedis()),
};
