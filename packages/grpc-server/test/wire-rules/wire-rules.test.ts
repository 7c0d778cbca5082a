// What a server answers to each breach of RFC 9113; node:http2 shows what another implementation makes of it.
import { once } from 'node:events';
import { createServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FLAG, FRAME } from '../support/frames.ts';
import { startOwnServer } from '../support/own-server.ts';
import { data, errorName, GREETING, message, openCall, RawClient, unaryCall } from '../support/raw-client.ts';
import { CONNECTION_RULES, STREAM_STATE_RULES } from './connection-rules.ts';
import { CONTINUATION_RULES, CONTROL_RULES, DATA_AND_HEADERS_RULES, WINDOW_RULES } from './frame-rules.ts';
import { MESSAGE_RULES } from './message-rules.ts';
import { ECHO_PATH, OPEN_PATH, type Reaction, WAIT_BODY, WAIT_PATH, type WireRule } from './rule.ts';

const RULES: readonly WireRule[] = [
  ...CONNECTION_RULES,
  ...STREAM_STATE_RULES,
  ...DATA_AND_HEADERS_RULES,
  ...CONTROL_RULES,
  ...WINDOW_RULES,
  ...CONTINUATION_RULES,
  ...MESSAGE_RULES,
];

interface Subject {
  readonly name: string;
  start(): Promise<{ readonly port: number; stop(): Promise<void> }>;
  isExpected(rule: WireRule, reaction: Reaction): boolean;
  /** Whether it closes the connection once it has sent a GOAWAY, as it should (§5.4.1). */
  readonly closes: boolean;
}

const SUBJECTS: readonly Subject[] = [
  {
    name: 'node:http2',
    start: startNodeHttp2,
    // It often answers INTERNAL_ERROR: whether it refuses is compared, not how.
    isExpected: ({ expect: expected, reference }, reaction) =>
      reference === 'varies' ||
      (reaction === 'nothing') === (reference === undefined ? expected.includes('nothing') : reference === 'passes'),
    closes: false,
  },
  {
    name: 'GrpcServer',
    start: () => startOwnServer(),
    isExpected: ({ expect: expected }, reaction) => expected.includes(reaction),
    closes: true,
  },
];

/** Behaves on the paths of the table as the contract service does. */
async function startNodeHttp2() {
  const server = createServer();
  const sessions = new Set<ServerHttp2Session>();
  server.on('session', (session) => {
    sessions.add(session);
    session.on('error', () => undefined);
    session.on('close', () => sessions.delete(session));
  });
  server.on('sessionError', () => undefined);
  server.on('stream', (stream, { ':path': path }) => {
    stream.on('error', () => undefined);
    stream.resume();
    if (path !== ECHO_PATH) return;
    stream.on('end', () => {
      stream.respond({ ':status': 200 });
      stream.end('answer');
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    stop: async () => {
      for (const session of sessions) session.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}

describe.each(SUBJECTS)('$name', ({ start, isExpected, closes }) => {
  let server: Awaited<ReturnType<Subject['start']>>;
  beforeAll(async () => {
    server = await start();
  });
  afterAll(() => server.stop());

  test.each(RULES)('RFC 9113 §$section: $name', async (rule) => {
    const client = await RawClient.connect(server.port, { greeting: rule.greeting ?? GREETING });
    if (rule.stream === 'open') client.send(openCall(1, OPEN_PATH));
    if (rule.stream === 'half-closed') client.send(unaryCall(1, WAIT_PATH, WAIT_BODY));
    if (rule.stream === 'closed') {
      client.send(openCall(1, ECHO_PATH), data(1, message('closes'), FLAG.endStream));
      await client.until(({ stream, flags, type }) => stream === 1 && (flags & FLAG.endStream) !== 0 && type < 2);
    }
    const seen = client.frames.length;
    client.send(rule.bytes);
    const got = await reaction(client, seen, closes);
    expect(isExpected(rule, got), `${got}; expected: ${rule.expect.join(' or ')}`).toBe(true);
    client.close();
  });
});

/** What the server has done by the time that it answers a PING, or has closed the connection. */
async function reaction(client: RawClient, seen: number, closes: boolean): Promise<Reaction> {
  // A second PING, because node:http2 sends what a stream has to say in a later turn.
  const isAlive = (await client.settled('first')) && (await client.settled('second'));
  const frames = client.frames.slice(seen);
  const goaway = frames.find(({ type }) => type === FRAME.goaway);
  if (goaway !== undefined) {
    if (closes) await client.closed();
    return `GOAWAY ${errorName(goaway.payload.readUInt32BE(4))}` as Reaction;
  }
  if (!isAlive) return 'closed';
  const reset = frames.find(({ type }) => type === FRAME.rstStream);
  return reset === undefined ? 'nothing' : (`RST_STREAM ${errorName(reset.payload.readUInt32BE(0))}` as Reaction);
}
