// The contract of a gRPC server, seen through the client of node:http2.
import { once } from 'node:events';
import { type ClientHttp2Session, type ClientHttp2Stream, connect, type IncomingHttpHeaders } from 'node:http2';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { SERVERS } from '../support/contract-servers.ts';
import type { ContractServer } from '../support/contract-service.ts';
import { message } from '../support/raw-client.ts';

describe.each(SERVERS)('node:http2 with $name', ({ start }) => {
  let server: ContractServer;
  let session: ClientHttp2Session;

  beforeEach(async () => {
    server = await start();
    session = connect(`http://127.0.0.1:${server.port}`);
    await once(session, 'connect');
  });
  afterEach(async () => {
    session.destroy();
    await server.stop();
  });

  function open(method: string): ClientHttp2Stream {
    return session.request({
      ':method': 'POST',
      ':path': `/test.Contract/${method}`,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
  }

  async function finish(stream: ClientHttp2Stream): Promise<{ readonly body: Buffer; readonly status: unknown }> {
    const parts: Buffer[] = [];
    let status: unknown;
    stream.on('response', (headers: IncomingHttpHeaders) => {
      status ??= headers['grpc-status'];
    });
    stream.on('trailers', (headers: IncomingHttpHeaders) => {
      status ??= headers['grpc-status'];
    });
    stream.on('data', (part: Buffer) => parts.push(part));
    await once(stream, 'end');
    return { body: Buffer.concat(parts), status };
  }

  test('calls many times at once with messages of all sizes', async () => {
    const sizes = Array.from({ length: 300 }, (_, index) => (index * 977) % 40_000);
    const answers = sizes.map(async (size) => {
      const stream = open('Echo');
      stream.end(message(Buffer.alloc(size, 'x')));
      const { body, status } = await finish(stream);
      return { bytes: body.length - 5, status };
    });
    expect(await Promise.all(answers)).toEqual(sizes.map((bytes) => ({ bytes, status: '0' })));
  });

  test('receives a failure as trailers only', async () => {
    const stream = open('Unary');
    stream.end(message(JSON.stringify({ fail: { code: 9, message: 'no' } })));
    const [headers, flags] = (await once(stream, 'response')) as [IncomingHttpHeaders, number];
    expect(headers).toMatchObject({ ':status': 200, 'grpc-status': '9', 'grpc-message': 'no' });
    expect(flags & 1).toBe(1);
    stream.resume();
  });

  test('reads a long stream with pauses, which other calls do not feel', async () => {
    const stream = open('Produce');
    stream.end(message(JSON.stringify({ count: 300, bytes: 50_000 })));
    stream.pause();
    await once(stream, 'response');
    for (let sent = 0; sent < 20; sent++) {
      const other = open('Echo');
      other.end(message(Buffer.alloc(10_000)));
      expect((await finish(other)).status).toBe('0');
    }
    expect(server.observed.written).toBeLessThan(200);
    const finished = finish(stream);
    stream.resume();
    const { body, status } = await finished;
    expect({ bytes: body.length, status }).toEqual({ bytes: 300 * 50_005, status: '0' });
  });

  test('sends a long stream that the method reads with pauses', async () => {
    const stream = open('Chat');
    const finished = finish(stream);
    stream.write(message('hold'));
    await expect.poll(() => server.observed.held.length).toBe(1);
    let sent = 0;
    while (sent < 50 && stream.write(message(Buffer.alloc(50_000)))) sent++;
    expect(server.observed.received).toBeLessThan(40);
    server.observed.release();
    for (; sent < 200; sent++) if (!stream.write(message(Buffer.alloc(50_000)))) await once(stream, 'drain');
    stream.end();
    const { status } = await finished;
    expect(status).toBe('0');
    expect(server.observed.received).toBeGreaterThanOrEqual(200);
  });

  test('cancels one call of many', async () => {
    const cancelled = open('Unary');
    cancelled.on('error', () => undefined);
    cancelled.end(message(JSON.stringify({ wait: true })));
    const other = open('Echo');
    other.end(message('x'));
    expect((await finish(other)).status).toBe('0');
    cancelled.close(8);
    await expect.poll(() => server.observed.cancelled).toBe(1);
  });
});
