// HPACK against another implementation: the one of node:http2, in both directions.
import { once } from 'node:events';
import {
  type ClientHttp2Session,
  connect,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  sensitiveHeaders,
} from 'node:http2';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import { HeaderDecoder, HeaderEncoder, type HeaderField } from '../src/index.ts';
import { FLAG, FRAME, type Frame, FrameParser, frame, PREFACE, SETTING, settings } from './support/frames.ts';

/** The other side of a client: acknowledges nothing, answers each request with the fields that `answer` returns. */
interface RawServer {
  readonly blocks: Buffer[];
  readonly client: ClientHttp2Session;
}

const opened: (() => void)[] = [];
afterEach(() => {
  for (const close of opened.splice(0)) close();
});

async function rawServer(options: {
  readonly headerTableSize: number;
  readonly clientTableSize?: number;
  readonly answer: (encoder: HeaderEncoder) => Buffer;
}): Promise<RawServer> {
  const blocks: Buffer[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.write(settings([SETTING.headerTableSize, options.headerTableSize], [SETTING.maxConcurrentStreams, 1_000]));
    serve(socket, blocks, options.answer);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const { clientTableSize: headerTableSize } = options;
  const client = connect(
    `http://127.0.0.1:${port}`,
    headerTableSize === undefined ? {} : { settings: { headerTableSize } },
  );
  client.on('error', () => undefined);
  opened.push(() => {
    client.destroy();
    server.close();
  });
  await once(client, 'remoteSettings');
  return { blocks, client };
}

function serve(socket: Socket, blocks: Buffer[], answer: (encoder: HeaderEncoder) => Buffer): void {
  const parser = new FrameParser();
  const encoder = new HeaderEncoder();
  let skip = PREFACE.length;
  let block: Buffer[] = [];
  socket.on('data', (chunk) => {
    const from = Math.min(skip, chunk.length);
    skip -= from;
    for (const each of parser.push(chunk.subarray(from))) {
      if (each.type === FRAME.settings) readTableSize(each, encoder);
      if (each.type !== FRAME.headers && each.type !== FRAME.continuation) continue;
      // node:http2 sends a priority with each request.
      block.push(
        (each.flags & FLAG.priority) === 0 || each.type !== FRAME.headers ? each.payload : each.payload.subarray(5),
      );
      if ((each.flags & FLAG.endHeaders) === 0) continue;
      blocks.push(Buffer.concat(block));
      block = [];
      socket.write(frame(FRAME.headers, FLAG.endHeaders | FLAG.endStream, each.stream, answer(encoder)));
    }
  });
}

function readTableSize({ payload, flags }: Frame, encoder: HeaderEncoder): void {
  if ((flags & FLAG.ack) !== 0) return;
  for (let at = 0; at < payload.length; at += 6) {
    if (payload.readUInt16BE(at) === SETTING.headerTableSize) encoder.setTableBytesMax(payload.readUInt32BE(at + 2));
  }
}

/** Resolves with the answer's fields. */
async function request(client: ClientHttp2Session, headers: OutgoingHttpHeaders): Promise<IncomingHttpHeaders> {
  const stream = client.request(headers, { endStream: true });
  stream.resume();
  const [answer] = (await once(stream, 'response')) as [IncomingHttpHeaders];
  return answer;
}

const NAME = fc
  .string({ unit: fc.constantFrom(...'abcdefghijklmnopqrstuvwxyz0123456789-_.'), minLength: 1, maxLength: 24 })
  .map((name) => `x-${name}`);
/** What node:http2 sends as it is: visible ASCII. */
const VALUE = fc.oneof(
  fc.string({ unit: fc.integer({ min: 0x21, max: 0x7e }).map((octet) => String.fromCharCode(octet)), maxLength: 40 }),
  fc.constantFrom('application/grpc', 'gzip', '', 'x'.repeat(300), 'Z~'.repeat(2_000)),
);
const HEADERS = fc.record({
  path: VALUE.map((value) => `/${value}`),
  fields: fc.uniqueArray(fc.tuple(NAME, VALUE, fc.boolean()), { selector: ([name]) => name, maxLength: 8 }),
});

test.each([0, 100, 4_096, 65_536])(
  'what node:http2 encodes for a table of %i octets is decoded',
  async (tableBytesMax) => {
    const server = await rawServer({
      headerTableSize: tableBytesMax,
      answer: (encoder) => encoder.encode([{ name: ':status', value: '200' }]),
    });
    const decoder = new HeaderDecoder({ tableBytesMax, listBytesMax: 65_536, fieldsMax: 100 });
    decoder.settingsAcknowledged();
    // A few values repeat, so that entries are used again, and evicted.
    const rows = fc.sample(HEADERS, { seed: 29, numRuns: 150 });
    for (const [index, { path, fields }] of [...rows, ...rows.slice(0, 20), ...rows.slice(0, 20)].entries()) {
      const headers: OutgoingHttpHeaders = { ':method': 'POST', ':path': path };
      for (const [name, value] of fields) headers[name] = value;
      const sensitive = fields.filter(([, , isSensitive]) => isSensitive).map(([name]) => name);
      await request(server.client, Object.assign(headers, { [sensitiveHeaders]: sensitive }));
      const block = server.blocks[index] ?? Buffer.alloc(0);
      const list = decoder.decode(block, 0, block.length) ?? [];
      const own = list.filter(({ name }) => name.startsWith('x-') || name === ':path');
      const sent = [[':path', path], ...fields.map(([name, value]) => [name, value])];
      expect(own.map(({ name, value }) => [name, value]).sort()).toEqual(sent.sort());
      expect(list.every(({ malformed }) => !malformed)).toBe(true);
    }
    expect(decoder.tableBytes).toBeLessThanOrEqual(tableBytesMax);
  },
);

test.each([undefined, 0, 100, 65_536])(
  'node:http2 with a table of %s octets decodes what is encoded',
  async (clientTableSize) => {
    let fields: readonly HeaderField[] = [];
    const server = await rawServer({
      headerTableSize: 4_096,
      ...(clientTableSize === undefined ? {} : { clientTableSize }),
      answer: (encoder) => encoder.encode(fields),
    });
    for (const row of fc.sample(HEADERS, { seed: 7, numRuns: 100 })) {
      fields = [
        { name: ':status', value: '200' },
        { name: 'content-type', value: 'application/grpc' },
        ...row.fields.map(([name, value]) => ({ name, value })),
      ];
      const answer = await request(server.client, { ':method': 'POST', ':path': '/' });
      expect(answer[':status']).toBe(200);
      for (const [name, value] of row.fields) expect(answer[name]).toBe(value);
    }
  },
);
