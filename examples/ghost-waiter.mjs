// Partial failure: the server has created a waiter's node and the answer is lost. Who asks again has two nodes in the
// queue. Of the first it knows nothing, and as its session is alive nobody removes it: everybody waits for a ghost.
import { setTimeout as sleep } from 'node:timers/promises';
import { startProxy } from './support/proxy.mjs';
import { tell, unique } from './support/story.mjs';
import { until } from './support/until.mjs';
import { startZooKeeper, zooKeeperSession, zookeeper } from './support/zookeeper.mjs';

const SESSION_MS = 2_000;
const QUEUE = '/queue';

await tell({
  title: 'A ghost in the queue: created, and the answer lost',
  older: {
    system: zookeeper,
    async run(stage) {
      const port = await startZooKeeper(stage);
      const proxy = await startProxy(stage, port);
      const bob = await zooKeeperSession(stage, port, SESSION_MS);
      const alice = await zooKeeperSession(stage, proxy.port, SESSION_MS);
      await bob.create(QUEUE, 'PERSISTENT');
      await createThoughAnswerIsLost(stage, { alice, bob, proxy });
      const own = { Alice: await enter(alice), Bob: await enter(bob) };
      stage.say('Alice asks again, and Bob comes too');
      const queue = await bob.children(QUEUE);
      stage.claim(`there are ${queue.length} nodes of the two who wait`, queue.length === 3);
      await sleep(3 * SESSION_MS);
      const [first] = await bob.children(QUEUE);
      stage.claim(
        `${3 * SESSION_MS} ms later, and for as long as Alice lives, neither has the lock`,
        !Object.values(own).includes(first),
      );
    },
  },
  async ours(stage, cluster) {
    const name = unique('ghost');
    const proxy = await startProxy(stage, Number(cluster.endpoints[0].split(':')[1]));
    const bob = await cluster.client();
    const alice = await cluster.client({ endpoints: [proxy.address] });
    // Her session is there before the network fails.
    await (await alice.lock(unique('before')).acquire()).release();
    proxy.mute();
    const acquiring = alice.lock(name).acquire();
    await until('her acquire is applied', async () => (await bob.locks.show(name))?.holders.length === 1);
    proxy.sever();
    stage.say('Alice has acquired the lock, and the answer is lost with her connection; the SDK asks again, by itself');
    const lock = await acquiring;
    const { holders, waiterCount } = await bob.locks.show(name);
    stage.claim('she holds it, once, and nobody waits', holders.length === 1 && waiterCount === 0);
    const waiting = bob.lock(name).acquire({ wait: '10s' });
    await lock.release();
    const next = await waiting;
    stage.claim('she releases it, and Bob has it', await next.check());
    await next.release();
    stage.claim('nothing is left of either', (await bob.locks.show(name)) === undefined);
  },
});

async function createThoughAnswerIsLost(stage, { alice, bob, proxy }) {
  proxy.mute();
  const creating = enter(alice).then(
    () => undefined,
    (error) => error,
  );
  await until('her node is there', async () => (await bob.children(QUEUE)).length === 1);
  proxy.sever();
  const error = await creating;
  stage.say(`Alice has created her node; her connection breaks before the answer comes (${error?.name})`);
  await until('Alice is back in her session', () => alice.connected());
}

/** Joins the queue; gives the name of the node. */
async function enter(session) {
  const path = await session.create(`${QUEUE}/waiter-`, 'EPHEMERAL_SEQUENTIAL');
  return path.slice(QUEUE.length + 1);
}
