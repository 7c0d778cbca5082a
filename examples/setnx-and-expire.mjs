// SETNX and EXPIRE are two requests. Who dies in between leaves a lock that nobody will ever free.
import { setTimeout as sleep } from 'node:timers/promises';
import { redis, startRedis } from './support/redis.mjs';
import { tell, unique } from './support/story.mjs';

const TTL_MS = 1_000;

await tell({
  title: 'A lock that never expires: SETNX and EXPIRE apart',
  older: {
    system: redis,
    async run(stage) {
      const server = await startRedis(stage);
      const [alice, bob] = [server.client(), server.client()];
      await alice.setnx('lock', 'alice');
      alice.disconnect();
      stage.say(`Alice has set the lock and dies before she has set its ${TTL_MS} ms to live`);
      await sleep(3 * TTL_MS);
      stage.claim(`${3 * TTL_MS} ms later Bob does not get it`, (await bob.setnx('lock', 'bob')) === 0);
      stage.claim('and never will: it has no time to live', (await bob.ttl('lock')) === -1);
    },
  },
  async ours(stage, cluster) {
    const name = unique('setnx');
    const alice = await cluster.holder({ sessionTtl: TTL_MS });
    const bob = await cluster.client();
    await alice.acquire(name);
    await alice.kill();
    stage.say('Alice has the lock and is killed at once: a lock belongs to a session from the moment it is there');
    const begunMs = performance.now();
    const lock = await bob.lock(name).acquire({ wait: '10s' });
    const tookMs = Math.round(performance.now() - begunMs);
    stage.claim(
      `Bob, who waited, was given it ${tookMs} ms after (her session lives ${TTL_MS} ms)`,
      await lock.check(),
    );
  },
});
