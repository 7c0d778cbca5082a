// Redis acknowledges a write before its replicas have it. When the master dies, the replica that takes over does not
// know the locks that were acknowledged last, and gives them to others.

import { startProxy } from './support/proxy.mjs';
import { redis, setLock, startRedis } from './support/redis.mjs';
import { tell, unique } from './support/story.mjs';
import { until } from './support/until.mjs';

const TTL_MS = 60_000;

await tell({
  title: 'A lock lost at the failover of Redis',
  killsNodes: true,
  older: {
    system: redis,
    async run(stage) {
      const master = await startRedis(stage);
      const link = await startProxy(stage, master.port);
      const replica = await startRedis(stage, { replicaOf: link.port });
      const [alice, bob] = [master.client(), replica.client()];
      await until('the replica is level', async () => {
        const role = await bob.role();
        return role[3] === 'connected';
      });
      link.mute();
      stage.say('the network between master and replica loses packets for a moment');
      stage.claim('Alice has the lock: the master says OK', await setLock(alice, 'lock', 'alice', TTL_MS));
      await master.kill();
      await bob.replicaof('NO', 'ONE');
      stage.say('the master dies, and the replica is made master, as Sentinel would');
      stage.claim('Bob has the lock too: the new master says OK', await setLock(bob, 'lock', 'bob', TTL_MS));
    },
  },
  async ours(stage, cluster) {
    const name = unique('failover');
    const [alice, bob] = [await cluster.client(), await cluster.client()];
    const lock = await alice.lock(name).acquire();
    stage.say(`Alice has the lock at version ${lock.version}: a majority of the nodes has it on disk`);
    stage.say(`${await cluster.killLeader()}, which led, is killed`);
    stage.claim('Bob does not get it', (await bob.lock(name).tryAcquire()) === undefined);
    stage.claim('Alice still has it', await lock.check());
    await lock.release();
    const next = await bob.lock(name).acquire({ wait: '10s' });
    stage.claim(`when she has released it Bob has it, at version ${next.version}`, next.version > lock.version);
  },
});
