import { connect, type RemoraClient } from 'remora';
import * as ours from 'remora/redlock';
import { Cluster } from '../harness.ts';
import { RedisServers } from './redis-servers.ts';
import type { Library, Side } from './side.ts';

const SERVERS = 5;
const QUORUM = 3;

/** The library `redlock` on five Redis servers. */
export async function redisSide(): Promise<Side> {
  const servers = await RedisServers.start(SERVERS);
  const clients = servers.clients();
  // Its package names no declarations for `import`.
  const name: string = 'redlock';
  const library = (await import(name)) as Library;
  return {
    library,
    clients,
    ownClients: async () => servers.impatientClients(),
    takeAway: async (resource) => {
      await Promise.all(clients.map((client) => client.del(resource)));
    },
    isLocked: async (resource) => {
      const found = await Promise.all(clients.map((client) => client.exists(resource)));
      return found.filter((count) => count > 0).length >= QUORUM;
    },
    endMinority: async () => {
      await Promise.all([1, 2].map((n) => servers.end(n)));
    },
    endMajority: async () => {
      await Promise.all([1, 2, 3, 4].map((n) => servers.end(n)));
    },
    stop: () => servers.stop(),
  };
}

/** `remora/redlock` on a cluster of three nodes. */
export async function remoraSide(): Promise<Side> {
  const cluster = await Cluster.start();
  const opened: RemoraClient[] = [];
  const open = async (requestTimeout?: number): Promise<RemoraClient> => {
    const client = await connect({ endpoints: cluster.endpoints, ...(requestTimeout && { requestTimeout }) });
    opened.push(client);
    return client;
  };
  const client = await open();
  return {
    // The same calls, with types of its own.
    library: ours as unknown as Library,
    clients: [client],
    ownClients: async () => [await open(IMPATIENT_MS)],
    takeAway: (resource) => client.locks.forceRelease(resource),
    isLocked: async (resource) => ((await client.locks.show(resource))?.holders.length ?? 0) > 0,
    endMinority: async () => {
      await cluster.node(1).end('SIGKILL');
    },
    endMajority: async () => {
      await Promise.all([1, 2].map((n) => cluster.node(n).end('SIGKILL')));
    },
    stop: async () => {
      await Promise.all(opened.map((each) => each.close()));
      await cluster.stop();
    },
  };
}

/** Of a request that nobody can answer. */
const IMPATIENT_MS = 2_000;
