// A lock with a fixed time to live has to be given one before anybody knows how long the work takes. If it is too
// short, two work at once.
import { setTimeout as sleep } from 'node:timers/promises';
import { redis, setLock, startRedis } from './support/redis.mjs';
import { tell, unique } from './support/story.mjs';
import { until } from './support/until.mjs';

const TTL_MS = 2_000;
const WORK_MS = 5_000;

/** How many are at work at once. */
class Overlap {
  most = 0;
  #now = 0;

  async during(work) {
    this.#now++;
    this.most = Math.max(this.most, this.#now);
    await work();
    this.#now--;
  }
}

await tell({
  title: 'A time to live that is too short',
  older: {
    system: redis,
    async run(stage) {
      const server = await startRedis(stage);
      const client = server.client();
      const atWork = new Overlap();
      const worker = async (name) => {
        await until(`${name} has the lock`, () => setLock(client, 'lock', name, TTL_MS));
        await atWork.during(() => sleep(WORK_MS));
      };
      stage.say(`a lock for ${TTL_MS} ms, and work that takes ${WORK_MS} ms today`);
      await Promise.all(['Alice', 'Bob'].map(worker));
      stage.claim(`${atWork.most} worked at once`, atWork.most === 2);
    },
  },
  async ours(stage, cluster) {
    const name = unique('short');
    const atWork = new Overlap();
    const worker = async () => {
      const client = await cluster.client({ sessionTtl: TTL_MS });
      const lock = await client.lock(name).acquire();
      await atWork.during(() => sleep(WORK_MS, undefined, { signal: lock.signal }));
      await lock.release();
    };
    stage.say(`sessions that live ${TTL_MS} ms and are kept alive by their clients, and the same work`);
    await Promise.all([worker(), worker()]);
    stage.claim(`${atWork.most} worked at a time`, atWork.most === 1);
  },
});
