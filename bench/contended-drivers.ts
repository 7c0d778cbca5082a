/** Many who want one lock: an operation is a turn at it, that is a wait, a grant and a release. */
import type { v3lockpb } from '@remora/protocol/etcd';
import { connect } from 'remora';
import { eventually } from '../test/e2e/eventually.ts';
import { leaseClient, lockClient } from '../test/support/etcd-clients.ts';
import { answer, type Driver } from './drivers.ts';
import type { LoadArguments } from './load-spec.ts';

/** Of this load alone: what an earlier one has left behind at a peer would keep all of its waiters waiting. */
const NAME = `bench/contended/${process.pid}`;
/** Longer than any run, in seconds. */
const LEASE_TTL = 600n;
/** The others are on their way into the queue, or out of it. */
const IN_QUEUE = 0.5;
const QUEUED = { timeoutMs: 60_000, pollMs: 100 };
const DRAINED = { timeoutMs: 10_000, pollMs: 20 };

export function openContended(load: LoadArguments): Promise<Driver> {
  if (load.api === 'etcd') return openEtcd(load);
  return load.workload === 'queue' ? openQueue(load) : openSessions(load);
}

async function openSessions({ endpoints, inflight }: LoadArguments): Promise<Driver> {
  const client = await connect({ endpoints });
  const locks = await Promise.all(
    Array.from({ length: inflight }, async () => (await client.session({ ttl: '60s' })).lock(NAME)),
  );
  return { operation: (worker) => turn(locks[worker]), close: () => client.close() };
}

/** A gateway lets 8,192 acquires wait, and the SDK would take all of them to the leader's. */
async function openQueue({ endpoints, inflight }: LoadArguments): Promise<Driver> {
  const clients = await Promise.all(endpoints.map((endpoint) => connect({ endpoints: endpoint, sessionTtl: '60s' })));
  const locks = clients.map((client) => client.lock(NAME));
  return {
    operation: (worker) => turn(locks[worker % locks.length]),
    settled: () =>
      eventually(
        'all are in the queue',
        async () => {
          const state = await clients[0]?.locks.show(NAME);
          return (state?.waiterCount ?? 0) >= IN_QUEUE * inflight;
        },
        QUEUED,
      ),
    async close() {
      await Promise.all(clients.map((client) => client.close()));
    },
  };
}

async function turn(lock: { acquire(): Promise<{ release(): Promise<void> }> } | undefined): Promise<void> {
  const held = await lock?.acquire();
  await held?.release();
}

/**
 * etcd's recipe, as its lock service runs it at the server. The recipe's owner is a lease, so each worker has its own.
 */
async function openEtcd({ endpoints, inflight }: LoadArguments): Promise<Driver> {
  const address = endpoints[0] ?? '';
  const [client, leases] = [lockClient(address), leaseClient(address)];
  const ids = await Promise.all(
    Array.from({ length: inflight }, () =>
      answer<{ readonly ID: bigint }>((done) => leases.leaseGrant({ TTL: LEASE_TTL, ID: 0n }, done)),
    ),
  );
  const name = Buffer.from(NAME);
  let inFlight = 0;
  return {
    async operation(worker) {
      const lease = ids[worker]?.ID ?? 0n;
      inFlight++;
      try {
        const { key } = await answer<v3lockpb.LockResponse>((done) => client.lock({ name, lease }, done));
        await answer((done) => client.unlock({ key }, done));
      } finally {
        inFlight--;
      }
    },
    // etcd 3.4 whose leases are revoked amid calls of its lock service never grants a lock again.
    async close() {
      await eventually('all had their turn', async () => inFlight === 0, DRAINED);
      await Promise.all(ids.map(({ ID }) => answer((done) => leases.leaseRevoke({ ID }, done))));
      leases.close();
      client.close();
    },
  };
}
