// A process may stand still between looking at its lock and writing: for a garbage collection, a page fault, a packet
// in the network. No lock can prevent that. What is protected has to refuse who comes too late.
import { setTimeout as sleep } from 'node:timers/promises';
import { redis, setLock, startRedis } from './support/redis.mjs';
import { tell, unique } from './support/story.mjs';

const TTL_MS = 300;
const SESSION_MS = 1_000;

await tell({
  title: 'A write that comes after the lock has expired',
  older: {
    system: redis,
    async run(stage) {
      const server = await startRedis(stage);
      const client = server.client();
      const file = { content: 'empty' };
      await setLock(client, 'lock', 'alice', TTL_MS);
      stage.claim('Alice looks: the lock is hers', (await client.get('lock')) === 'alice');
      await sleep(2 * TTL_MS);
      stage.say(`then she stands still for ${2 * TTL_MS} ms, and the lock's ${TTL_MS} ms are over`);
      await setLock(client, 'lock', 'bob', 60_000);
      file.content = 'by Bob';
      stage.say('Bob has the lock, and writes');
      file.content = 'by Alice';
      stage.say('Alice goes on where she was, and writes');
      stage.claim(`what Bob has written is gone: the file is ${file.content}`, file.content === 'by Alice');
    },
  },
  async ours(stage, cluster) {
    const name = unique('delayed');
    const alice = await cluster.holder({ sessionTtl: SESSION_MS });
    const bob = await cluster.client();
    const guard = (await cluster.client()).fence.guard();
    const file = { content: 'empty' };
    const write = (version, content) =>
      guard.run(name, version, () => {
        file.content = content;
      });

    const version = await alice.acquire(name);
    stage.claim(`Alice looks: the lock is hers, at version ${version}`, !(await alice.isLost()));
    alice.freeze();
    const lock = await bob.lock(name).acquire({ wait: '10s' });
    stage.say(`then she stands still for longer than her session's ${SESSION_MS} ms`);
    await write(lock.version, 'by Bob');
    stage.say(`Bob has the lock, and writes with version ${lock.version}`);
    alice.thaw();
    const refusal = await write(version, 'by Alice').catch((error) => error.code);
    stage.claim(`Alice goes on where she was: her write with version ${version} is ${refusal}`, refusal === 'FENCED');
    stage.claim(`the file is ${file.content}`, file.content === 'by Bob');
    const stored = await bob.kv.put(name, 'by Alice', { fence: { name, version } }).catch((error) => error.code);
    stage.claim(`Remora's own store says the same: ${stored}`, stored === 'FENCED');
    stage.claim('and when she looks again, she sees that the lock is lost', await alice.isLost());
  },
});
