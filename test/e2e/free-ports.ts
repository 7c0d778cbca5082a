import { randomInt } from 'node:crypto';
import { createServer } from 'node:net';

/** Below the range that systems take outgoing ports from, so that a port stays free while its node is down. */
const LOWEST = 11_000;
/** Each process that runs tests at the same time has ports of its own: one whose node is down is not another's. */
const PORTS_EACH = 5_000;
const SHARES = 4;
const share = Number(process.env.VITEST_POOL_ID ?? 0) % SHARES;
const first = LOWEST + share * PORTS_EACH;

/** Nobody may listen yet where somebody is going to. */
const drawn = new Set<number>();

/**
 * Ports that are free now, each given once in the life of this process. Drawn at random, so that test runs side by side
 * seldom draw the same.
 */
export async function freePorts(host: string, count: number): Promise<readonly number[]> {
  const found = new Set<number>();
  for (let tries = 0; found.size < count; tries++) {
    if (tries > 1_000) throw new Error('found no free ports');
    const port = randomInt(first, first + PORTS_EACH);
    if (drawn.has(port)) continue;
    drawn.add(port);
    if (await isFree(host, port)) found.add(port);
  }
  return [...found];
}

function isFree(host: string, port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(false));
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(true)));
  });
}
