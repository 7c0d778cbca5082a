/** The operations that are measured, through the SDK and through etcd's own API. */

import { readFileSync } from 'node:fs';
import { Metadata, type ServiceError } from '@grpc/grpc-js';
import { PutRequest, RangeRequest, type v3lockpb } from '@remora/protocol/etcd';
import type { KVClient } from '@remora/protocol/grpc-clients';
import { connect, type HeldLock } from 'remora';
import { kvClient, leaseClient, lockClient } from '../test/support/etcd-clients.ts';
import type { LoadArguments } from './load-spec.ts';

export interface Driver {
  /** The nth operation of a worker. */
  operation(worker: number, n: number): Promise<unknown>;
  /** Resolves when the load is what it is to be, where that takes a while: the warm-up begins then. */
  settled?(): Promise<unknown>;
  close(): Promise<void>;
}

export type OpenDriver = (load: LoadArguments) => Promise<Driver>;

/** Two clients that hand one lock to each other. */
export interface HandoffDriver {
  acquire(client: 0 | 1): Promise<() => Promise<unknown>>;
  close(): Promise<void>;
}

const VALUE = Buffer.alloc(64, 'x');
const KEYS_PER_WORKER = 100;
const READ_KEYS = 1_000;
const PREFILL_AT_ONCE = 50;
/** Longer than any run, in seconds. */
const LEASE_TTL = 600n;
const WRITER_DEADLINE_MS = 1_000;

export async function openDriver(load: LoadArguments): Promise<Driver> {
  return load.api === 'sdk' ? openSdk(load) : openEtcd(load);
}

export async function openHandoff(load: LoadArguments): Promise<HandoffDriver> {
  return load.api === 'sdk' ? openSdkHandoff(load) : openEtcdHandoff(load);
}

// ---------------------------------------------------------------------------------------------------- SDK

async function openSdk({ workload, endpoints, tls }: LoadArguments): Promise<Driver> {
  const files = tls && { ca: readFileSync(tls.ca), cert: readFileSync(tls.cert), key: readFileSync(tls.key) };
  const client = await connect({ endpoints, ...(files !== undefined && { tls: files }) });
  const close = (): Promise<void> => client.close();
  if (workload === 'lock') {
    const operation = async (worker: number, n: number): Promise<void> => {
      const held = await client.lock(lockName(worker, n)).acquire();
      await held.release();
    };
    return { operation, close };
  }
  const put = (key: string) => client.kv.put(key, VALUE);
  if (workload === 'get') {
    await prefill(put);
    return { operation: (worker, n) => client.kv.get(readKey(worker, n)), close };
  }
  return { operation: (worker, n) => put(writeKey(worker, n)), close };
}

async function openSdkHandoff({ endpoints }: LoadArguments): Promise<HandoffDriver> {
  const clients = await Promise.all(twoFirst(endpoints).map((endpoint) => connect({ endpoints: endpoint })));
  return {
    async acquire(index) {
      const held: HeldLock | undefined = await clients[index]?.lock('bench/handoff').acquire();
      return async () => held?.release();
    },
    async close() {
      await Promise.all(clients.map((client) => client.close()));
    },
  };
}

// ---------------------------------------------------------------------------------------------------- etcd v3

async function openEtcd({ workload, endpoints }: LoadArguments): Promise<Driver> {
  if (workload === 'writer') return openEtcdWriter(endpoints);
  const address = endpoints[0] ?? '';
  if (workload === 'lock') {
    const lock = await openEtcdLock(address);
    const operation = async (worker: number, n: number): Promise<void> => {
      const unlock = await lock.acquire(lockName(worker, n));
      await unlock();
    };
    return { operation, close: lock.close };
  }
  const client = kvClient(address);
  const close = async (): Promise<void> => client.close();
  const put = (key: string) => etcdPut(client, key);
  if (workload === 'get') {
    await prefill(put);
    return { operation: (worker, n) => etcdGet(client, readKey(worker, n)), close };
  }
  return { operation: (worker, n) => put(writeKey(worker, n)), close };
}

/** Goes on to the next member when one does not answer, as a careful client would. */
function openEtcdWriter(endpoints: readonly string[]): Driver {
  const clients = endpoints.map((endpoint) => kvClient(endpoint));
  let current = 0;
  const operation = async (worker: number, n: number): Promise<void> => {
    const client = clients[current];
    if (client === undefined) throw new Error('no endpoints');
    try {
      await etcdPut(client, writeKey(worker, n), Date.now() + WRITER_DEADLINE_MS);
    } catch (error) {
      current = (current + 1) % clients.length;
      throw error;
    }
  };
  return {
    operation,
    async close() {
      for (const client of clients) client.close();
    },
  };
}

async function openEtcdHandoff({ endpoints }: LoadArguments): Promise<HandoffDriver> {
  const locks = await Promise.all(twoFirst(endpoints).map(openEtcdLock));
  return {
    async acquire(index) {
      const lock = locks[index];
      if (lock === undefined) throw new Error('no endpoints');
      return lock.acquire('bench/handoff');
    },
    async close() {
      await Promise.all(locks.map((lock) => lock.close()));
    },
  };
}

/** etcd's lock service with one lease for all locks. */
async function openEtcdLock(address: string) {
  const client = lockClient(address);
  const leases = leaseClient(address);
  const { ID: lease } = await answer<{ readonly ID: bigint }>((done) =>
    leases.leaseGrant({ TTL: LEASE_TTL, ID: 0n }, done),
  );
  const acquire = async (name: string) => {
    const request = { name: Buffer.from(name), lease };
    const { key } = await answer<v3lockpb.LockResponse>((done) => client.lock(request, done));
    return () => answer((done) => client.unlock({ key }, done));
  };
  const close = async (): Promise<void> => {
    await answer((done) => leases.leaseRevoke({ ID: lease }, done));
    leases.close();
    client.close();
  };
  return { acquire, close };
}

function etcdPut(client: KVClient, key: string, deadline?: number): Promise<unknown> {
  const request = PutRequest.fromPartial({ key: Buffer.from(key), value: VALUE });
  if (deadline === undefined) return answer((done) => client.put(request, done));
  return answer((done) => client.put(request, new Metadata(), { deadline }, done));
}

function etcdGet(client: KVClient, key: string): Promise<unknown> {
  return answer((done) => client.range(RangeRequest.fromPartial({ key: Buffer.from(key) }), done));
}

export function answer<Reply>(
  call: (done: (error: ServiceError | null, reply: Reply) => void) => unknown,
): Promise<Reply> {
  return new Promise((resolve, reject) => {
    call((error, reply) => {
      if (error === null) resolve(reply);
      else reject(error);
    });
  });
}

// ---------------------------------------------------------------------------------------------------- names

function lockName(worker: number, n: number): string {
  return `bench/lock/${worker}/${n % KEYS_PER_WORKER}`;
}

function writeKey(worker: number, n: number): string {
  return `bench/put/${worker}/${n % KEYS_PER_WORKER}`;
}

function readKey(worker: number, n: number): string {
  return `bench/get/${(worker * 7 + n) % READ_KEYS}`;
}

async function prefill(put: (key: string) => Promise<unknown>): Promise<void> {
  for (let first = 0; first < READ_KEYS; first += PREFILL_AT_ONCE) {
    await Promise.all(Array.from({ length: PREFILL_AT_ONCE }, (_, i) => put(readKey(0, first + i))));
  }
}

/** Two clients at different members where there are two. */
function twoFirst(endpoints: readonly string[]): readonly string[] {
  const [first = '', second = first] = endpoints;
  return [first, second];
}
