import { Client, credentials, type ServiceError } from '@grpc/grpc-js';
import * as pb from '@remora/protocol/etcd';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { EtcdProcess, missingEtcd } from '../etcd-diff/servers/etcd-process.ts';
import { describeWith } from '../support/needs.ts';
import { MISTAKES, type Mistake } from './etcd-errors/mistakes.ts';
import { Cluster } from './harness.ts';

const DEADLINE_MS = 30_000;

describeWith(missingEtcd(), 'the same mistake gets the code and the text of etcd 3.4.23', () => {
  let etcd: EtcdProcess;
  let one: Cluster;
  let nine: Cluster;
  let clients: readonly Client[] = [];

  beforeAll(async () => {
    const borders = Array.from({ length: 8 }, (_, i) => `k${i}`).join(',');
    [etcd, one, nine] = await Promise.all([
      EtcdProcess.start(),
      Cluster.start({ nodes: 1 }),
      Cluster.start({ nodes: 1, flags: { 'pre-split': borders } }),
    ]);
    const endpoints = [etcd.client, one.node(1).client, nine.node(1).client];
    clients = endpoints.map((endpoint) => new Client(endpoint, credentials.createInsecure()));
    await Promise.all(clients.map(prepare));
  });
  afterAll(async () => {
    for (const client of clients) client.close();
    await Promise.all([etcd?.stop(), one?.stop(), nine?.stop()]);
  });

  test.each(MISTAKES)('$name', async ({ method, request, differs }) => {
    const [theirs, ...ours] = await Promise.all(clients.map((client) => outcome(client, method.path, request)));
    const expected = differs?.remora ?? theirs;
    expect(ours).toEqual([expected, expected]);
    if (differs === undefined) expect(theirs).toMatch(/^\d+ ./);
    else expect(theirs).not.toBe(expected);
  });

  test('the health check of gRPC finds the server serving', async () => {
    const { path } = pb.health.HealthService.check;
    const request = Buffer.from(pb.health.HealthCheckRequest.encode({ service: '' }).finish());
    const answers = await Promise.all(clients.map((client) => answerOf(client, path, request)));
    for (const answer of answers) expect(pb.health.HealthCheckResponse.decode(answer)).toEqual({ status: 1 });
  });
});

/** Keys at revisions 2 and 3, of which the first is compacted, and a lease. */
async function prepare(client: Client): Promise<void> {
  const key = Buffer.from('k');
  const steps: readonly (readonly [string, Uint8Array])[] = [
    [pb.KVService.put.path, pb.PutRequest.encode(pb.PutRequest.fromPartial({ key })).finish()],
    [pb.KVService.put.path, pb.PutRequest.encode(pb.PutRequest.fromPartial({ key })).finish()],
    [pb.KVService.compact.path, pb.CompactionRequest.encode({ revision: 2n, physical: true }).finish()],
    [pb.LeaseService.leaseGrant.path, pb.LeaseGrantRequest.encode({ ID: 77n, TTL: 100n }).finish()],
  ];
  for (const [path, request] of steps) expect(await outcome(client, path, Buffer.from(request))).toBe('ok');
}

/** Code and text of the error, as clients tell errors apart by both. */
function outcome(client: Client, path: Mistake['method']['path'], request: Buffer): Promise<string> {
  return answerOf(client, path, request).then(
    () => 'ok',
    (error: ServiceError) => `${error.code} ${error.details}`,
  );
}

function answerOf(client: Client, path: string, request: Buffer): Promise<Buffer> {
  const asBytes = (bytes: Buffer): Buffer => bytes;
  return new Promise((resolve, reject) => {
    client.makeUnaryRequest(
      path,
      asBytes,
      asBytes,
      request,
      { deadline: Date.now() + DEADLINE_MS },
      (error: ServiceError | null, answer?: Buffer) =>
        error === null ? resolve(answer ?? Buffer.alloc(0)) : reject(error),
    );
  });
}
