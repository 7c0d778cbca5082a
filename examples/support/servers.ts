// Where the servers are that the examples use.
import { Redis } from 'ioredis';
import { Pool } from 'pg';

/** Of `npm start`, unless the environment names another cluster. */
export const ENDPOINTS = process.env.REMORA_ENDPOINTS ?? '127.0.0.1:7480';

const REDIS_URL = process.env.REDIS_URL ?? 'redis://127.0.0.1:6379';
const DATABASE_URL = process.env.DATABASE_URL ?? 'postgres://postgres@127.0.0.1:5432/postgres';
/** The tables of the examples have a schema of their own. */
const SCHEMA = 'remora_example';

/** @throws Error if no Redis answers. */
export async function connectRedis(): Promise<Redis> {
  let isConnected = false;
  const retryStrategy = (attempt: number) => (isConnected ? Math.min(attempt * 50, 2_000) : null);
  const redis = new Redis(REDIS_URL, { lazyConnect: true, maxRetriesPerRequest: null, retryStrategy });
  let cause: unknown;
  redis.on('error', (error) => {
    cause = error; // It says more than that of `connect`.
  });
  await redis.connect().catch(() => {
    throw new Error(`no Redis answers at ${REDIS_URL}; start one, or name another one in REDIS_URL`, { cause });
  });
  isConnected = true;
  return redis;
}

/** @throws Error if no PostgreSQL answers, or it refuses the user. */
export async function connectPostgres(): Promise<Pool> {
  const pool = new Pool({ connectionString: DATABASE_URL, options: `-c search_path=${SCHEMA}` });
  await pool.query(`CREATE SCHEMA IF NOT EXISTS ${SCHEMA}`).catch((cause: unknown) => {
    throw new Error(`PostgreSQL cannot be used at ${DATABASE_URL}; start it, or name a database in DATABASE_URL`, {
      cause,
    });
  });
  return pool;
}
