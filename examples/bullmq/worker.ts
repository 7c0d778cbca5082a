// A worker. Start as many as you like: each customer's jobs run one at a time over all of them.
import { setTimeout } from 'node:timers/promises';
import { DelayedError, type Job, Worker } from 'bullmq';
import { connect, type HeldLock } from 'remora';
import { RedisStore } from '../fences/redis-store.ts';
import { connectRedis, ENDPOINTS } from '../support/servers.ts';
import { accountOf, type Charge, QUEUE } from './charges.ts';

const CONCURRENCY = 8;
/** When to look again at a job whose customer was busy. */
const RETRY_MS = 50;

const remora = await connect({ endpoints: ENDPOINTS });
const redis = await connectRedis();
const balances = new RedisStore(redis);
const worker = new Worker<Charge, number>(QUEUE, perform, { connection: redis, concurrency: CONCURRENCY });

worker.on('error', (error) => console.error(error));

// BullMQ lets running jobs end, and then their locks are free.
process.once('SIGTERM', async () => {
  await worker.close();
  await remora.close();
  await balances.close();
});

async function perform(job: Job<Charge, number>, token?: string): Promise<number> {
  await using lock = await remora.lock(`customers/${job.data.customer}`).tryAcquire();
  if (lock === undefined) {
    await job.moveToDelayed(Date.now() + RETRY_MS, token); // Another job of this customer runs.
    throw new DelayedError();
  }
  return await charge(job.data, lock); // With `await`: the lock is released when this function returns.
}

/** Returns the new balance. */
async function charge({ customer, amount }: Charge, { version, signal }: HeldLock): Promise<number> {
  const account = accountOf(customer);
  const balance = (await balances.read(account, version)) - amount;
  await setTimeout(20, undefined, { signal }); // Stands for work. It ends at once if the lock is lost.
  await balances.write(account, balance, version);
  return balance;
}
