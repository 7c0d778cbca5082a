import { credentials, type ServiceError as GrpcError } from '@grpc/grpc-js';
import { LeaseGrantRequest, PutRequest, RangeRequest } from '@remora/protocol/etcd';
import { KVClient, LeaseClient, RemoraLockClient } from '@remora/protocol/grpc-clients';
import { OpenSessionRequest } from '@remora/protocol/remora';
import { connect } from 'remora';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { eventually } from './eventually.ts';
import { Cluster } from './harness.ts';

const LIMIT = 20;
/** At once, and more than the limit and its burst. */
const MANY = 100;

let cluster: Cluster;
let address: string;

beforeAll(async () => {
  cluster = await Cluster.start({ nodes: 1, flags: { 'requests-per-second-max': String(LIMIT) } });
  address = cluster.node(1).client;
});
afterAll(() => cluster?.stop());

type Reply = (error: GrpcError | null) => void;

/** How many calls at once end: those that succeed, and the errors of the others. */
async function callMany(call: (i: number, reply: Reply) => unknown): Promise<(GrpcError | null)[]> {
  return Promise.all(
    Array.from({ length: MANY }, (_, i) => new Promise<GrpcError | null>((resolve) => call(i, resolve))),
  );
}

/** The same again until some are let in: the calls before may have left no room, which comes back with time. */
async function callUntilSomeAreLetIn(call: (i: number, reply: Reply) => unknown): Promise<(GrpcError | null)[]> {
  const answers: (GrpcError | null)[] = [];
  return eventually('some calls are let in', async () => {
    answers.push(...(await callMany(call)));
    return answers.includes(null) && answers;
  });
}

function expectRefusals(answers: readonly (GrpcError | null)[]): void {
  const refused = answers.filter((error) => error !== null);
  expect(refused.length).toBeGreaterThan(0);
  expect(refused.length).toBeLessThan(answers.length);
  for (const error of refused) {
    expect(error.code).toBe(8);
    expect(error.metadata.get('remora-code')).toEqual(['RESOURCE_EXHAUSTED']);
    expect(Number(error.metadata.get('grpc-retry-pushback-ms')[0])).toBeGreaterThan(0);
  }
}

test('etcd’s API refuses what is above the limit, and only what it acknowledged is there', async () => {
  const kv = new KVClient(address, credentials.createInsecure());
  const keyOf = (i: number): Buffer => Buffer.from(`admission/${i}`);
  const answers = await callMany((i, reply) => kv.put(PutRequest.fromPartial({ key: keyOf(i) }), reply));
  expectRefusals(answers);
  expect(answers.find((error) => error !== null)?.details).toBe('etcdserver: too many requests');
  await using client = await connect({ endpoints: cluster.endpoints });
  const { kvs } = await client.kv.range({ prefix: 'admission/' }, { timeout: '30s' });
  const there = answers.flatMap((error, i) => (error === null ? [keyOf(i).toString()] : []));
  expect(kvs.map(({ key }) => key.toString()).sort()).toEqual(there.sort());
  const range = RangeRequest.fromPartial({ key: keyOf(1) });
  expectRefusals(await callUntilSomeAreLetIn((_i, reply) => kv.range(range, reply)));
  kv.close();
});

test('leases and sessions are refused above the limit like anything else that begins', async () => {
  const leases = new LeaseClient(address, credentials.createInsecure());
  const locks = new RemoraLockClient(address, credentials.createInsecure());
  expectRefusals(
    await callUntilSomeAreLetIn((_i, reply) => leases.leaseGrant(LeaseGrantRequest.fromPartial({ TTL: 60n }), reply)),
  );
  expectRefusals(
    await callUntilSomeAreLetIn((_i, reply) =>
      locks.openSession(OpenSessionRequest.fromPartial({ ttlMs: 60_000n }), reply),
    ),
  );
  leases.close();
  locks.close();
});

test('the SDK brings everything to an end, after pauses', async () => {
  await using client = await connect({ endpoints: cluster.endpoints, requestTimeout: '60s' });
  const puts = Array.from({ length: MANY }, (_, i) => client.kv.put(`sdk/${i}`, 'v'));
  await Promise.all(puts);
  expect((await client.kv.range({ prefix: 'sdk/' }, { countOnly: true })).count).toBe(MANY);
  const refused = await cluster.node(1).metrics('remora_gateway_refused_total');
  expect(refused.get('reason="rate"')).toBeGreaterThan(0);
  expect(refused.get('reason="calls"')).toBe(0);
});
