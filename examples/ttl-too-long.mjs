// If the fixed time to live is long enough for the longest work, whoever crashes holds everybody up for as long.
import { setTimeout as sleep } from 'node:timers/promises';
import { redis, setLock, startRedis } from './support/redis.mjs';
import { tell, unique } from './support/story.mjs';

const TTL_MS = 600_000;
const PATIENCE_MS = 5_000;
const SESSION_MS = 2_000;

await tell({
  title: 'A time to live that is too long',
  older: {
    system: redis,
    async run(stage) {
      const server = await startRedis(stage);
      const [alice, bob] = [server.client(), server.client()];
      await setLock(alice, 'lock', 'alice', TTL_MS);
      alice.disconnect();
      stage.say(`Alice has the lock for ${TTL_MS / 60_000} minutes, as her work may take so long, and dies`);
      await sleep(PATIENCE_MS);
      const leftMs = await bob.pttl('lock');
      stage.claim(
        `${PATIENCE_MS} ms later Bob still waits, and has ${Math.round(leftMs / 1_000)} s to go`,
        leftMs > TTL_MS - 2 * PATIENCE_MS,
      );
    },
  },
  async ours(stage, cluster) {
    const name = unique('long');
    const alice = await cluster.holder({ sessionTtl: SESSION_MS });
    const bob = await cluster.client();
    await alice.acquire(name);
    await sleep(PATIENCE_MS);
    stage.claim(
      `Alice works for ${PATIENCE_MS} ms in a session of ${SESSION_MS} ms, and Bob does not get the lock`,
      (await bob.lock(name).tryAcquire()) === undefined,
    );
    await alice.kill();
    const begunMs = performance.now();
    await bob.lock(name).acquire({ wait: `${PATIENCE_MS}ms` });
    const tookMs = Math.round(performance.now() - begunMs);
    stage.claim(`she dies, and ${tookMs} ms later Bob has it`, tookMs < PATIENCE_MS);
  },
});
