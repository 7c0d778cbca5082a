import { Metadata, Server, ServerCredentials, type ServerUnaryCall, type sendUnaryData } from '@grpc/grpc-js';
import { admin } from '@remora/protocol/remora';
import { afterEach, describe, expect, test } from 'vitest';
import { AdminClient } from './admin-client.ts';

const servers: Server[] = [];
const clients: AdminClient[] = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.close();
  for (const server of servers.splice(0)) server.forceShutdown();
});

type Answer = { readonly code: number; readonly message: string; readonly remora?: string } | admin.CompactResponse;

/** A gateway that answers compactions so; undefined: not at all. Gives its address, and what it was asked. */
async function gateway(answers: (Answer | undefined)[]): Promise<{ address: string; asked: bigint[]; server: Server }> {
  const server = new Server();
  const asked: bigint[] = [];
  const compact = (
    call: ServerUnaryCall<admin.CompactRequest, admin.CompactResponse>,
    done: sendUnaryData<unknown>,
  ) => {
    asked.push(call.request.revision);
    const answer = answers.length > 1 ? answers.shift() : answers[0];
    if (answer === undefined) return;
    if (!('code' in answer)) return done(null, answer);
    const metadata = new Metadata();
    if (answer.remora !== undefined) metadata.set('remora-code', answer.remora);
    done({ code: answer.code, details: answer.message, metadata });
  };
  server.addService({ compact: admin.AdminService.compact }, { compact });
  servers.push(server);
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync('127.0.0.1:0', ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  return { address: `127.0.0.1:${port}`, asked, server };
}

function client(...endpoints: readonly string[]): AdminClient {
  const made = new AdminClient({ endpoints, timeoutMs: 2_000, connectTimeoutMs: 2_000 });
  clients.push(made);
  return made;
}

/** Nothing listens there. */
const NOBODY = '127.0.0.1:1';

describe('an admin client', () => {
  test('asks the first node that is there', async () => {
    const there = await gateway([{ revision: 7 }]);
    expect(await client(NOBODY, there.address).compact(5)).toEqual({ revision: 7 });
    expect(there.asked).toEqual([5n]);
  });

  test('has one connection for calls that are made together', async () => {
    const [first, second] = [await gateway([{ revision: 1 }]), await gateway([{ revision: 2 }])];
    const one = client(first.address, second.address);
    expect(await Promise.all([one.compact(3), one.compact(4)])).toEqual([{ revision: 1 }, { revision: 1 }]);
    expect([first.asked.length, second.asked.length]).toEqual([2, 0]);
  });

  test('goes over to the next one when that goes away', async () => {
    const [first, second] = [await gateway([{ revision: 1 }]), await gateway([{ revision: 2 }])];
    const one = client(first.address, second.address);
    expect(await one.compact(0)).toEqual({ revision: 1 });
    first.server.forceShutdown();
    expect(await one.compact(0)).toEqual({ revision: 2 });
  });

  test('does not stay with a node that does not answer', async () => {
    const [first, second] = [await gateway([undefined]), await gateway([{ revision: 2 }])];
    const endpoints = [first.address, second.address];
    const hasty = new AdminClient({ endpoints, timeoutMs: 300, connectTimeoutMs: 2_000 });
    clients.push(hasty);
    await expect(hasty.compact(0)).rejects.toMatchObject({ code: 'UNKNOWN_OUTCOME' });
    expect(await hasty.compact(0)).toEqual({ revision: 2 });
  });

  test('gives the error of the node that answered, and does not ask another one', async () => {
    const refusal = { code: 14, message: 'no leader yet', remora: 'UNAVAILABLE' };
    const [first, second] = [await gateway([refusal]), await gateway([{ revision: 2 }])];
    await expect(client(first.address, second.address).compact(0)).rejects.toMatchObject({
      name: 'RemoraError',
      code: 'UNAVAILABLE',
      message: 'no leader yet',
    });
    expect(second.asked).toEqual([]);
  });

  test.each([
    { name: 'a node of an older version', answer: { code: 12, message: 'unknown' }, code: 'UNIMPLEMENTED' },
    { name: 'a refusal', answer: { code: 3, message: 'no', remora: 'INVALID_ARGUMENT' }, code: 'INVALID_ARGUMENT' },
    { name: 'a code of a newer version', answer: { code: 3, message: 'no', remora: 'TOO_BLUE' }, code: 'UNAVAILABLE' },
  ])('tells of $name by $code', async ({ answer, code }) => {
    const { address } = await gateway([answer]);
    await expect(client(address).compact(0)).rejects.toMatchObject({ code });
  });

  test('does not say that nothing was changed when the node that was asked went away, and there is no other', async () => {
    const only = await gateway([undefined]);
    const changed = client(only.address).compact(0);
    changed.catch(() => undefined);
    await expect.poll(() => only.asked.length).toBe(1);
    only.server.forceShutdown();
    await expect(changed).rejects.toMatchObject({ code: 'UNKNOWN_OUTCOME' });
  });

  test('ends when a node does not answer, and when there is none', async () => {
    const { address } = await gateway([undefined]);
    const hasty = new AdminClient({ endpoints: [address], timeoutMs: 50, connectTimeoutMs: 2_000 });
    clients.push(hasty);
    await expect(hasty.compact(0)).rejects.toMatchObject({
      code: 'UNKNOWN_OUTCOME',
      message: expect.stringContaining('no answer within 50ms'),
    });
    const lost = new AdminClient({ endpoints: [NOBODY, NOBODY], timeoutMs: 50, connectTimeoutMs: 100 });
    clients.push(lost);
    await expect(lost.compact(0)).rejects.toMatchObject({ code: 'UNAVAILABLE', details: { unreached: true } });
  });
});
