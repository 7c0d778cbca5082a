// Two workers process eight charges each of three customers.
import { once } from 'node:events';
import { Queue, QueueEvents } from 'bullmq';
import { RedisStore } from '../fences/redis-store.ts';
import { failure, startChild } from '../support/children.ts';
import { connectRedis } from '../support/servers.ts';
import { accountOf, type Charge, QUEUE } from './charges.ts';

const WORKER = new URL('./worker.js', import.meta.url);
const CUSTOMERS = ['Ada', 'Grace', 'Edsger'];
const AMOUNTS = [1, 2, 3, 4, 5, 6, 7, 8];

const redis = await connectRedis();
const balances = new RedisStore(redis);
const queue = new Queue<Charge, number>(QUEUE, { connection: redis });
const events = new QueueEvents(QUEUE, { connection: redis.duplicate() });
await events.waitUntilReady();
await queue.obliterate({ force: true });
for (const customer of CUSTOMERS) await balances.create(accountOf(customer), 100);

const charges = CUSTOMERS.flatMap((customer) => AMOUNTS.map((amount) => ({ customer, amount })));
const completed = untilCompleted(charges.length);
await queue.addBulk(charges.map((data) => ({ name: 'charge', data })));
const workers = [startChild(WORKER), startChild(WORKER)];
await Promise.race([completed, ...workers.map(failure)]);
for (const customer of CUSTOMERS) {
  console.log(`${customer}: 100 - 36 = ${await redis.hget(accountOf(customer), 'value')}`);
}

for (const worker of workers) worker.kill('SIGTERM');
await Promise.all(workers.map((worker) => once(worker, 'exit')));
await events.close();
await queue.close();
await balances.close();

/** @throws Error if a job fails. */
function untilCompleted(count: number): Promise<void> {
  let left = count;
  return new Promise((resolve, reject) => {
    events.on('completed', () => {
      left -= 1;
      if (left === 0) resolve();
    });
    events.on('failed', ({ jobId, failedReason }) => reject(new Error(`job ${jobId} failed: ${failedReason}`)));
  });
}
