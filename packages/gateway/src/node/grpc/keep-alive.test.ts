// `remora.v1.Lock/KeepAlive` over real gRPC: what each heartbeat is answered, and when the stream ends.

import { type ClientDuplexStream, credentials, status } from '@grpc/grpc-js';
import { nodeClock, SeededRandom, ServiceError, silentLogger } from '@remora/base';
import type { ClusterView, Query, QueryResult } from '@remora/protocol';
import { RemoraLockClient } from '@remora/protocol/grpc-clients';
import type { KeepAliveRequest, KeepAliveResponse } from '@remora/protocol/remora';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { NO_AUTHENTICATION } from '../../../test/support/no-authentication.ts';
import type { Backend, BackendDone, RequestOptions } from '../../backend.ts';
import { ClientServer } from './client-server.ts';
import { lockService } from './lock-services.ts';

type Asked = Extract<Query, { type: 'leaseKeepAlive' }>;

/** Heartbeats wait until the test answers them. */
class HeartbeatBackend implements Backend {
  readonly nodeId = 1;
  readonly asked: { readonly query: Asked; readonly done: BackendDone<QueryResult>; gaveUp: boolean }[] = [];

  query(query: Query, _options: RequestOptions, done: BackendDone<QueryResult>): () => void {
    const held = { query: query as Asked, done, gaveUp: false };
    this.asked.push(held);
    return () => {
      held.gaveUp = true;
    };
  }

  answer(index: number, outcome: number | ServiceError): void {
    const { query, done } = this.asked[index] ?? expect.fail('nobody asked');
    if (outcome instanceof ServiceError) return done(outcome, undefined);
    const { id, incarnation } = query;
    done(undefined, { result: { type: 'leaseKeepAlive', id, incarnation, ttlMs: outcome }, revision: 1, raftTerm: 1 });
  }

  command(): never {
    throw new ServiceError('UNAVAILABLE', 'not in this test');
  }
  watch(): never {
    throw new ServiceError('UNAVAILABLE', 'not in this test');
  }
  watchLocks(): never {
    throw new ServiceError('UNAVAILABLE', 'not in this test');
  }
  view(): ClusterView {
    return { clusterId: 'c', nodes: [], ranges: [], leaders: [], masterLeader: 0 };
  }
  check(): void {}

  rangeTimeMs(): undefined {
    return undefined;
  }
}

let backend: HeartbeatBackend;
let server: ClientServer;
let locks: InstanceType<typeof RemoraLockClient>;
let stream: ClientDuplexStream<KeepAliveRequest, KeepAliveResponse>;
let got: KeepAliveResponse[];
let ended: Promise<{ readonly code: number }>;

beforeEach(async () => {
  backend = new HeartbeatBackend();
  server = new ClientServer({ identification: NO_AUTHENTICATION, clock: nodeClock(), logger: silentLogger });
  server.add(lockService({ backend, random: new SeededRandom(1) }, server.guard));
  const port = await server.start('127.0.0.1', 0);
  locks = new RemoraLockClient(`127.0.0.1:${port}`, credentials.createInsecure());
  stream = locks.keepAlive();
  got = [];
  stream.on('data', (response: KeepAliveResponse) => got.push(response));
  stream.on('error', () => {});
  ended = new Promise((resolve) => stream.on('status', resolve));
});

afterEach(async () => {
  stream.cancel();
  locks.close();
  await server.stop(50);
});

function beat(id: bigint, sequence: bigint): KeepAliveRequest {
  return { session: { id, incarnation: 7n }, sequence };
}

const answered = (count: number) => expect.poll(() => got.length).toBe(count);
const asked = (count: number) => expect.poll(() => backend.asked.length).toBe(count);

test('heartbeats of several sessions share a stream, and each is answered by its own sequence as its outcome comes', async () => {
  for (const request of [beat(1n, 10n), beat(2n, 20n), beat(1n, 11n)]) stream.write(request);
  await asked(3);
  expect(backend.asked.map(({ query }) => [query.id, query.incarnation])).toEqual([
    [1n, 7],
    [2n, 7],
    [1n, 7],
  ]);
  for (const index of [2, 0, 1]) backend.answer(index, 9_000 + index);
  await answered(3);
  expect(got).toEqual([
    { ...beat(1n, 11n), ttlMs: 9_002, errorCode: '' },
    { ...beat(1n, 10n), ttlMs: 9_000, errorCode: '' },
    { ...beat(2n, 20n), ttlMs: 9_001, errorCode: '' },
  ]);
});

const outcomes: readonly {
  readonly name: string;
  readonly outcome: number | ServiceError;
  readonly expect: Pick<KeepAliveResponse, 'ttlMs' | 'errorCode'>;
}[] = [
  { name: 'renewed', outcome: 10_000, expect: { ttlMs: 10_000, errorCode: '' } },
  { name: 'unknown to the range', outcome: -1, expect: { ttlMs: -1, errorCode: '' } },
  {
    name: 'over',
    outcome: new ServiceError('LEASE_NOT_FOUND', 'it has expired'),
    expect: { ttlMs: -1, errorCode: '' },
  },
  {
    name: 'not confirmed',
    outcome: new ServiceError('UNAVAILABLE', 'nobody leads'),
    expect: { ttlMs: 0, errorCode: 'UNAVAILABLE' },
  },
  {
    name: 'not answered in time',
    outcome: new ServiceError('DEADLINE_EXCEEDED', 'no answer'),
    expect: { ttlMs: 0, errorCode: 'DEADLINE_EXCEEDED' },
  },
];
test.each(outcomes)('a session that is $name is answered $expect, and the stream goes on', async (row) => {
  stream.write(beat(5n, 1n));
  await asked(1);
  backend.answer(0, row.outcome);
  await answered(1);
  expect(got).toEqual([{ ...beat(5n, 1n), ...row.expect }]);
  stream.write(beat(5n, 2n));
  await asked(2);
  backend.answer(1, 10_000);
  await answered(2);
});

test('a client that has said all it had to say gets its answers, and then the end', async () => {
  stream.write(beat(1n, 1n));
  stream.end();
  await asked(1);
  expect(got).toEqual([]);
  backend.answer(0, 500);
  expect((await ended).code).toBe(status.OK);
  expect(got).toEqual([{ ...beat(1n, 1n), ttlMs: 500, errorCode: '' }]);
});

test.each<{ readonly name: string; readonly request: KeepAliveRequest }>([
  { name: 'without a session', request: { session: undefined, sequence: 1n } },
  {
    name: 'with an incarnation beyond any revision',
    request: { session: { id: 1n, incarnation: 2n ** 60n }, sequence: 1n },
  },
])('a heartbeat $name ends the stream as INVALID_ARGUMENT', async ({ request }) => {
  stream.write(request);
  expect((await ended).code).toBe(status.INVALID_ARGUMENT);
  expect(backend.asked).toEqual([]);
});

test('what nobody waits for any more is given up', async () => {
  stream.write(beat(1n, 1n));
  await asked(1);
  stream.cancel();
  await expect.poll(() => backend.asked[0]?.gaveUp).toBe(true);
});
