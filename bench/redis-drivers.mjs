// Locks on Redis, as loads of `pnpm bench locks`: on one server as its own pages say (SET NX PX, and a script that
// deletes what is one's own), and on several through the redlock package. Commands of one loop turn are sent together.
import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import Redlock from 'redlock';

/** Longer than any cycle, shorter than what a crash may leave behind. */
const TTL_MS = 30_000;
const LOCKS_PER_WORKER = 100;
const RELEASE = `if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) else return 0 end`;

/** One endpoint: `SET NX PX`. More: Redlock. */
export async function open({ endpoints }) {
  const clients = endpoints.map((endpoint) => {
    const [host, port] = endpoint.split(':');
    return new Redis({ host, port: Number(port), enableAutoPipelining: true });
  });
  const operation = clients.length === 1 ? single(clients[0]) : redlock(clients);
  return {
    operation,
    async close() {
      for (const client of clients) client.disconnect();
    },
  };
}

function single(client) {
  client.defineCommand('releaseLock', { numberOfKeys: 1, lua: RELEASE });
  return async (worker, n) => {
    const [name, owner] = [lockName(worker, n), randomBytes(20).toString('hex')];
    if ((await client.set(name, owner, 'PX', TTL_MS, 'NX')) !== 'OK') throw new Error(`${name} is taken`);
    if ((await client.releaseLock(name, owner)) !== 1) throw new Error(`${name} was not held`);
  };
}

function redlock(clients) {
  const locks = new Redlock(clients);
  return async (worker, n) => {
    const lock = await locks.lock(lockName(worker, n), TTL_MS);
    await lock.unlock();
  };
}

function lockName(worker, n) {
  return `bench/lock/${worker}/${n % LOCKS_PER_WORKER}`;
}
