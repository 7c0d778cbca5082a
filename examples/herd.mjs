// All who wait watch the one node that is the lock. Each release wakes them all, and all but one have woken in vain:
// what a hand-over costs grows with the number of those who wait.
import { setTimeout as sleep } from 'node:timers/promises';
import { startProxy } from './support/proxy.mjs';
import { tell, unique } from './support/story.mjs';
import { until } from './support/until.mjs';
import { startZooKeeper, zooKeeperSession, zookeeper } from './support/zookeeper.mjs';

const FEW = 8;
const MANY = 64;
const SESSION_MS = 20_000;
/** What each does under the lock. */
const WORK_MS = 30;

await tell({
  title: 'The herd: a release wakes everybody',
  older: {
    system: zookeeper,
    async run(stage) {
      const port = await startZooKeeper(stage);
      const [few, many] = [await zooKeeperHerd(stage, port, FEW), await zooKeeperHerd(stage, port, MANY)];
      for (const each of [few, many]) stage.say(described(each));
      stage.claim('most woke in vain', many.wakeUps > 10 * MANY);
      stage.claim('with eight times as many a hand-over costs more than three times as much', costs(many, few) > 3);
    },
  },
  async ours(stage, cluster) {
    const [few, many] = [await remoraQueue(stage, cluster, FEW), await remoraQueue(stage, cluster, MANY)];
    for (const each of [few, many]) stage.say(described(each));
    stage.claim('each woke once, with the lock', few.wakeUps === FEW && many.wakeUps === MANY);
    stage.claim('with eight times as many a hand-over costs the same, within a half', costs(many, few) < 1.5);
  },
});

/** Waiters who create one ephemeral node, and watch it while it is there. */
async function zooKeeperHerd(stage, port, waiters) {
  const proxy = await startProxy(stage, port);
  const path = `/herd-${waiters}`;
  const holder = await zooKeeperSession(stage, port, SESSION_MS);
  await holder.create(path, 'EPHEMERAL');
  let [wakeUps, watching] = [0, 0];
  const waiter = async () => {
    const session = await zooKeeperSession(stage, proxy.port, SESSION_MS);
    for (;;) {
      const woken = deferred();
      if (await session.exists(path, woken.resolve)) {
        watching++;
        await woken.promise;
        watching--;
        wakeUps++;
      }
      const created = await session.create(path, 'EPHEMERAL').then(
        () => true,
        () => false,
      );
      if (!created) continue;
      await sleep(WORK_MS);
      return session.remove(path);
    }
  };
  const all = Array.from({ length: waiters }, waiter);
  await until('all wait', () => watching === waiters);
  const before = proxy.bytes;
  await holder.remove(path);
  await Promise.all(all);
  return { waiters, wakeUps, bytes: proxy.bytes - before };
}

/** Waiters who queue for the lock. */
async function remoraQueue(stage, cluster, waiters) {
  const name = unique(`herd-${waiters}`);
  const proxy = await startProxy(stage, Number(cluster.endpoints[0].split(':')[1]));
  const looker = await cluster.client();
  const holding = await looker.lock(name).acquire();
  let wakeUps = 0;
  const waiter = async () => {
    // No heartbeat of a session that lives so long is among the bytes of the hand-overs.
    const client = await cluster.client({ endpoints: [proxy.address], sessionTtl: '5m' });
    const lock = await client.lock(name).acquire();
    wakeUps++;
    await sleep(WORK_MS);
    await lock.release();
  };
  const all = Array.from({ length: waiters }, waiter);
  await until('all wait', async () => (await looker.locks.show(name)).waiterCount === waiters);
  const before = proxy.bytes;
  await holding.release();
  await Promise.all(all);
  return { waiters, wakeUps, bytes: proxy.bytes - before };
}

function described({ waiters, wakeUps, bytes }) {
  const perHandOver = (sum) => (sum / waiters).toFixed(0);
  return `${waiters} wait: ${wakeUps} wake-ups, ${perHandOver(wakeUps)} and ${perHandOver(bytes)} bytes for each hand-over`;
}

/** What a hand-over takes among many, as a multiple of what it takes among few. */
function costs(many, few) {
  return many.bytes / many.waiters / (few.bytes / few.waiters);
}

function deferred() {
  let resolve;
  const promise = new Promise((done) => {
    resolve = done;
  });
  return { promise, resolve };
}
