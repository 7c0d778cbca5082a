// The contract of a gRPC server, seen through the client of grpc-js: calls with one answer.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SERVERS } from '../support/contract-servers.ts';
import { CODE, type ContractServer, MESSAGE_BYTES_MAX, type Reflection } from '../support/contract-service.ts';
import { GrpcJsClient } from '../support/grpc-js-client.ts';

describe.each(SERVERS)('calls to $name', ({ start }) => {
  let server: ContractServer;
  let client: GrpcJsClient;

  beforeEach(async () => {
    server = await start();
    client = new GrpcJsClient(server.port);
  });
  afterEach(async () => {
    client.close();
    await server.stop();
  });

  describe('a unary call', () => {
    test.each([0, 1, 100, 16_379, 16_380, 65_535, 65_536, 1_000_000, 4 << 20])(
      'of %i bytes is answered with as many, whatever the windows are',
      async (size) => {
        const message = Buffer.alloc(size, 'remora');
        const { code, answers } = await client.echo(message);
        expect(code).toBe(CODE.ok);
        expect(answers[0]?.equals(message)).toBe(true);
      },
    );

    test('does not wait for others on its connection', async () => {
      const waiting = client.cancellable({ wait: true });
      const sizes = Array.from({ length: 200 }, (_, index) => (index % 7) * 5_000);
      const outcomes = await Promise.all(sizes.map((size) => client.echo(Buffer.alloc(size, 'x'))));
      expect(outcomes.map(({ answers }) => answers[0]?.length)).toEqual(sizes);
      waiting.cancel();
      expect((await waiting.outcome).code).toBe(CODE.cancelled);
    });

    test('larger than the server accepts is refused, and the connection goes on', async () => {
      const { code } = await client.echo(Buffer.alloc(MESSAGE_BYTES_MAX + 1));
      expect(code).toBe(CODE.resourceExhausted);
      expect((await client.echo(Buffer.from('next'))).code).toBe(CODE.ok);
    });

    test.each(['/test.Contract/Missing', '/test.Missing/Echo'])(
      'of an unknown method %s is unimplemented',
      async (path) => {
        expect((await client.call(path)).code).toBe(CODE.unimplemented);
      },
    );
  });

  describe('a status', () => {
    test.each([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16])('of code %i arrives', async (code) => {
      const outcome = await client.unary({ fail: { code, message: `code ${code}` } });
      expect(outcome).toMatchObject({ code, message: `code ${code}` });
    });

    test.each([
      { name: 'of no octets', message: '' },
      { name: 'of plain text', message: 'plain' },
      { name: 'with a percent sign', message: '100% sure' },
      { name: 'that looks encoded', message: '%41' },
      { name: 'of several lines', message: 'new\nline\r\n' },
      { name: 'beyond ASCII', message: 'Grüße, 世界 🦈' },
      { name: 'with control characters', message: '~ \x7f\x01' },
      { name: 'of 4,000 octets', message: 'x'.repeat(4_000) },
    ])('message $name arrives as it was sent', async ({ message }) => {
      const outcome = await client.unary({ fail: { code: CODE.notFound, message } });
      expect(outcome).toMatchObject({ code: CODE.notFound, message });
    });

    test('arrives with trailers, and so does an answer', async () => {
      const bytes = Buffer.from([0, 1, 2, 250, 255]);
      const trailers = [
        ['x-text', 'value'],
        ['x-bytes-bin', bytes.toString('base64')],
      ] as const;
      const failed = await client.unary({ fail: { code: CODE.aborted, message: '' }, trailers });
      const answered = await client.unary({ head: [['x-head', 'first']], trailers });
      expect(answered.code).toBe(CODE.ok);
      expect(answered.head.get('x-head')).toEqual(['first']);
      for (const { trailers: got } of [failed, answered]) {
        expect(got.get('x-text')).toEqual(['value']);
        expect(got.get('x-bytes-bin')).toEqual([bytes]);
      }
    });
  });

  describe('metadata', () => {
    test('of text and of bytes arrives, with every value of a name', async () => {
      const bytes = [Buffer.alloc(0), Buffer.from([0]), Buffer.from([255, 0, 1]), Buffer.from('bytes')];
      const { answers } = await client.unary(
        { reflect: true },
        {
          metadata: [
            ['x-text', 'one'],
            ['x-text', 'two, three'],
            ['x-empty', ''],
            ['x-odd', '!"#$%&/()=?~ [] {}'],
            ...bytes.map((value) => ['x-data-bin', value] as const),
          ],
        },
      );
      const got = reflection(answers);
      expect(got.filter(([name]) => name === 'x-text').flatMap(([, value]) => value.split(', '))).toEqual([
        'one',
        'two',
        'three',
      ]);
      expect(got).toContainEqual(['x-odd', '!"#$%&/()=?~ [] {}']);
      const gotBytes = got.filter(([name]) => name === 'x-data-bin').map(([, value]) => value);
      expect(gotBytes.filter((value) => value !== '')).toEqual(
        bytes.filter(({ length }) => length > 0).map((value) => value.toString('base64')),
      );
    });

    test('leaves out what belongs to the transport', async () => {
      const { answers } = await client.unary({ reflect: true }, { deadlineMs: 60_000 });
      const names = reflection(answers).map(([name]) => name);
      for (const name of ['te', 'content-type', ':path', ':method', 'grpc-timeout']) expect(names).not.toContain(name);
    });

    function reflection([answer]: readonly Buffer[]): Reflection['metadata'] {
      return (JSON.parse(answer?.toString() ?? '') as Reflection).metadata;
    }
  });

  describe('a deadline', () => {
    test('is known to the method', async () => {
      const { answers } = await client.unary({ reflect: true }, { deadlineMs: 50_000 });
      const { deadlineMs } = JSON.parse(answers[0]?.toString() ?? '') as Reflection;
      expect(deadlineMs).toBeGreaterThan(10_000);
      expect(deadlineMs).toBeLessThanOrEqual(50_000);
      const without = JSON.parse((await client.unary({ reflect: true })).answers[0]?.toString() ?? '') as Reflection;
      expect(without.deadlineMs).toBeNull();
    });

    test('ends the call and cancels it at the server', async () => {
      const { code } = await client.unary({ wait: true }, { deadlineMs: 50 });
      expect(code).toBe(CODE.deadlineExceeded);
      await expect.poll(() => server.observed.cancelled).toBe(1);
    });
  });

  test('a call that the client cancels is cancelled at the server', async () => {
    const { outcome, cancel } = client.cancellable({ wait: true });
    // The second call arrives behind the first one.
    await client.echo(Buffer.alloc(0));
    expect(server.observed.cancelled).toBe(0);
    cancel();
    expect((await outcome).code).toBe(CODE.cancelled);
    await expect.poll(() => server.observed.cancelled).toBe(1);
  });

  test('calls of a connection that is lost are cancelled', async () => {
    const waiting = [1, 2, 3].map(() => client.unary({ wait: true }));
    await client.echo(Buffer.alloc(0));
    client.close();
    const lost = new GrpcJsClient(server.port);
    expect((await lost.echo(Buffer.alloc(0))).code).toBe(CODE.ok);
    lost.close();
    await server.stop();
    for (const { code } of await Promise.all(waiting)) expect([CODE.unavailable, CODE.cancelled]).toContain(code);
  });

  describe('messages compressed with gzip', () => {
    test('are accepted', async () => {
      const compressing = new GrpcJsClient(server.port, { 'grpc.default_compression_algorithm': 2 });
      for (const size of [0, 10, 100_000]) {
        const message = Buffer.alloc(size, 'again');
        const { code, answers } = await compressing.echo(message);
        expect({ code, isSame: answers[0]?.equals(message) }).toEqual({ code: CODE.ok, isSame: true });
      }
      compressing.close();
    });

    test('are refused when they inflate beyond the largest message', async () => {
      const compressing = new GrpcJsClient(server.port, { 'grpc.default_compression_algorithm': 2 });
      const { code } = await compressing.echo(Buffer.alloc(MESSAGE_BYTES_MAX + 1));
      expect(code).toBe(CODE.resourceExhausted);
      expect((await compressing.echo(Buffer.from('next'))).code).toBe(CODE.ok);
      compressing.close();
    });
  });
});
