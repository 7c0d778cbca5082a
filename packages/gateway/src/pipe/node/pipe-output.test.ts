/** What waits for clients of the Pipe who do not read: over real sockets. */

import { connect } from 'node:net';
import { type FramePort, FrameStream, nodeClock, OPENING, openFramePort, ServiceError } from '@remora/base';
import { dialPipe, type FrameReceiver, LinkCaller, PIPE_HELLO, type PipeCommand, pipeCommand } from '@remora/protocol';
import { afterEach, expect, test } from 'vitest';
import { NO_AUTHENTICATION } from '../../../test/support/no-authentication.ts';
import type { Backend } from '../../backend.ts';
import { createPipeService } from './pipe-service.ts';

const MIB = 1 << 20;
const LIMITS = { bytesMax: 24 * MIB, bytesPerAddressMax: 12 * MIB };

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const clean of cleanups.splice(0).reverse()) clean();
});

const KEY = Buffer.from('k');
const DELETE: PipeCommand = {
  command: { type: 'kv', op: { type: 'delete', key: KEY, prevKv: true } },
  requestId: 'r1',
  timeoutMs: 10_000,
};

/** A gateway that answers each command with a value of a MiB. */
async function gateway(): Promise<FramePort> {
  const kv = { key: KEY, value: Buffer.alloc(MIB, 1), createRevision: 1, modRevision: 1, version: 1, lease: 0n };
  const backend: Pick<Backend, 'command' | 'rangeTimeMs'> = {
    command(_command, _options, done) {
      done(undefined, { result: { type: 'delete', deleted: 1, prev: [kv] }, revision: 7, raftTerm: 1 });
      return () => {};
    },
    rangeTimeMs: () => 5,
  };
  const clock = nodeClock();
  const pipe = createPipeService({ backend: backend as Backend, clock, identification: NO_AUTHENTICATION });
  const port = await openFramePort({ clock, host: '127.0.0.1', port: 0, services: [pipe], output: LIMITS });
  cleanups.push(() => {
    pipe.close();
    port.close();
  });
  return port;
}

/** A client that reads the hello and nothing after it; asks for `count` answers once it was let in. */
function deafClient({ port }: FramePort, from: string, count: number) {
  const clock = nodeClock();
  const state = { over: false };
  const socket = connect({ port, host: '127.0.0.1', localAddress: from });
  cleanups.push(() => socket.destroy());
  socket.on('close', () => {
    state.over = true;
  });
  let receiver: FrameReceiver | undefined;
  socket.write(OPENING);
  const stream = new FrameStream(
    socket,
    { clock, probeMs: 60_000, probeTimeoutMs: 60_000 },
    {
      onHello() {
        socket.pause();
        receiver?.onOpen();
      },
      onFrame() {},
      onDrain() {},
      onEnd() {},
    },
  );
  stream.sayHello(PIPE_HELLO);
  const link = {
    start(given: FrameReceiver): void {
      receiver = given;
    },
    send: (frame: Uint8Array) => stream.send(frame),
    close() {},
  };
  const caller = new LinkCaller({ link, clock });
  for (let i = 0; i < count; i++) caller.call(pipeCommand, DELETE, { timeoutMs: 60_000 }, () => {});
  cleanups.push(() => caller.close(new ServiceError('UNAVAILABLE', 'the test is over')));
  return state;
}

function ask({ port }: FramePort): Promise<string> {
  const clock = nodeClock();
  const caller = new LinkCaller({ link: dialPipe(`127.0.0.1:${port}`, { clock }), clock });
  cleanups.push(() => caller.close(new ServiceError('UNAVAILABLE', 'the test is over')));
  return new Promise((resolve) => {
    caller.call(pipeCommand, DELETE, { timeoutMs: 10_000 }, (error, reply) =>
      resolve(error?.code ?? reply?.result.type ?? ''),
    );
  });
}

const eventually = (what: () => unknown) => expect.poll(what, { timeout: 20_000, interval: 2 });

test('little waits for clients who do not read, however many they are, and others are served (OB2)', async () => {
  const port = await gateway();
  let most = 0;
  for (let i = 0; i < 20; i++) {
    deafClient(port, `127.0.0.${2 + (i % 4)}`, 9);
    const answer = ask(port);
    most = Math.max(most, port.output.unreadBytes);
    expect(await answer).toBe('delete');
    most = Math.max(most, port.output.unreadBytes);
  }
  await eventually(() => port.output.closed.unread_bytes + port.output.closed.address_unread_bytes).toBeGreaterThan(10);
  expect(most).toBeGreaterThan(4 * MIB);
  expect(most).toBeLessThanOrEqual(LIMITS.bytesMax);
});

test('a client with few answers keeps its connection beside one at the same address that takes none (OB2)', async () => {
  const port = await gateway();
  const small = deafClient(port, '127.0.0.2', 5);
  await eventually(() => port.input.connections).toBe(1);
  const large = deafClient(port, '127.0.0.2', 30);
  await eventually(() => large.over).toBe(true);
  expect(small.over).toBe(false);
  expect(port.output.closed).toEqual({ unread_bytes: 0, address_unread_bytes: 1 });
});
