// A lock is freed by DEL, which deletes whatever is there: also the lock of somebody else, who got it when one's own
// had expired.
import { setTimeout as sleep } from 'node:timers/promises';
import { redis, setLock, startRedis } from './support/redis.mjs';
import { tell, unique } from './support/story.mjs';

const SHORT_MS = 300;
const LONG_MS = 60_000;
const SESSION_MS = 1_000;

await tell({
  title: "Another's lock deleted",
  older: {
    system: redis,
    async run(stage) {
      const server = await startRedis(stage);
      const client = server.client();
      await setLock(client, 'lock', 'alice', SHORT_MS);
      await sleep(2 * SHORT_MS);
      stage.say(`Alice has the lock for ${SHORT_MS} ms and works longer`);
      stage.claim('Bob has it after her', await setLock(client, 'lock', 'bob', LONG_MS));
      stage.say('Alice is done, and deletes "her" lock');
      await client.del('lock');
      stage.claim('Carol has it as well, while Bob works', await setLock(client, 'lock', 'carol', LONG_MS));
    },
  },
  async ours(stage, cluster) {
    const name = unique('delete');
    const alice = await cluster.holder({ sessionTtl: SESSION_MS });
    const [bob, carol] = [await cluster.client(), await cluster.client()];
    await alice.acquire(name);
    alice.freeze();
    stage.say(`Alice has the lock, and stands still for longer than her session's ${SESSION_MS} ms`);
    const lock = await bob.lock(name).acquire({ wait: '10s' });
    stage.say('Bob has it after her');
    alice.thaw();
    await alice.release();
    stage.say('Alice goes on, and releases "her" lock');
    stage.claim('Bob still has it: only its owner can release a lock', await lock.check());
    stage.claim('Carol does not get it', (await carol.lock(name).tryAcquire()) === undefined);
  },
});
