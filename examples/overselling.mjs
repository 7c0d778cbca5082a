// To look at a stock and to take from it are two requests. Many who look before anybody takes sell what is not there.
import { redis, startRedis } from './support/redis.mjs';
import { tell, unique } from './support/story.mjs';

const STOCK = 10;
const BUYERS = 50;

await tell({
  title: 'Overselling: check and decrement apart',
  older: {
    system: redis,
    async run(stage) {
      const server = await startRedis(stage);
      const clients = Array.from({ length: BUYERS }, () => server.client());
      await clients[0].set('stock', STOCK);
      const sold = await countSales(clients, async (client) => {
        if (Number(await client.get('stock')) <= 0) return false;
        await client.decr('stock');
        return true;
      });
      const left = Number(await clients[0].get('stock'));
      stage.say(`${STOCK} in stock, ${BUYERS} buyers at once`);
      stage.claim(`${sold} were sold, and the stock is ${left}`, sold > STOCK && left < 0);
    },
  },
  async ours(stage, cluster) {
    const [name, stock] = [unique('stock-lock'), unique('stock')];
    const client = await cluster.client();
    stage.say(`${STOCK} in stock, ${BUYERS} buyers at once`);

    await client.kv.put(stock, String(STOCK));
    const underLock = await countSales(Array(BUYERS).fill(client), async () => {
      const held = await client.lock(name).acquire();
      try {
        return await takeOne(client.kv, stock);
      } finally {
        await held.release();
      }
    });
    const left = await numberAt(client.kv, stock);
    stage.claim(`under a lock ${underLock} were sold, and the stock is ${left}`, underLock === STOCK && left === 0);

    await client.kv.put(stock, String(STOCK));
    const compared = await countSales(Array(BUYERS).fill(client), () => compareAndTakeOne(client.kv, stock));
    const leftThen = await numberAt(client.kv, stock);
    stage.claim(
      `by transactions that compare, without a lock, ${compared} were sold, and the stock is ${leftThen}`,
      compared === STOCK && leftThen === 0,
    );
  },
});

/** How many of the buyers, all at once, bought something. */
async function countSales(buyers, buy) {
  const bought = await Promise.all(buyers.map(buy));
  return bought.filter(Boolean).length;
}

async function numberAt(kv, key) {
  return Number((await kv.get(key)).value.toString());
}

/** The very code that oversells above; here it runs under a lock. */
async function takeOne(kv, stock) {
  const left = await numberAt(kv, stock);
  if (left <= 0) return false;
  await kv.put(stock, String(left - 1));
  return true;
}

/** Takes one if the stock is what it was when it was looked at, and looks again otherwise. */
async function compareAndTakeOne(kv, stock) {
  for (;;) {
    const found = await kv.get(stock);
    const left = Number(found.value.toString());
    if (left <= 0) return false;
    const { succeeded } = await kv.txn({
      compare: [{ key: stock, target: 'modRevision', is: '=', than: found.modRevision }],
      success: [{ put: stock, value: String(left - 1) }],
    });
    if (succeeded) return true;
  }
}
