import { connect, type Socket } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { ManualClock } from '../../testing/manual-clock.ts';
import { nodeClock } from '../node-clock.ts';
import { FrameParser, frameBytes } from './frame-parser.ts';
import { dialFrames, type FramePort, type FramePortOptions, OPENING, openFramePort } from './frame-port.ts';
import type { FrameHandlers, FrameStream, FrameStreamOptions, Hello, StreamEnd } from './frame-stream.ts';

const OPTIONS: FrameStreamOptions = {
  clock: nodeClock(),
  frameBytesMax: 8 << 20,
  probeMs: 60_000,
  probeTimeoutMs: 60_000,
};

const cleanups: (() => void)[] = [];
afterEach(() => {
  for (const clean of cleanups.splice(0).reverse()) clean();
});

/** What one end was told. */
class Heard implements FrameHandlers {
  readonly hellos: Hello[] = [];
  readonly frames: Buffer[] = [];
  readonly ends: StreamEnd[] = [];
  drains = 0;
  /** How often it was told that something came. */
  signs = 0;

  onHeard(): void {
    this.signs++;
  }

  onHello(hello: Hello): void {
    this.hellos.push(hello);
  }

  onFrame(frame: Buffer): void {
    this.frames.push(frame);
  }

  onDrain(): void {
    this.drains++;
  }

  onEnd(end: StreamEnd): void {
    this.ends.push(end);
  }
}

/** A port with a service that lets everybody in but those of cluster `other`. */
async function openPort(options: Partial<FramePortOptions> = {}) {
  const heard = new Heard();
  const streams: FrameStream[] = [];
  const port: FramePort = await openFramePort({
    ...OPTIONS,
    ...options,
    ...{ host: '127.0.0.1', port: 0 },
    services: [
      {
        name: 'test',
        open(hello, stream) {
          heard.onHello(hello);
          if (hello.cluster === 'other') return stream.end({ code: 'WRONG_CLUSTER', message: 'not here' });
          stream.sayHello({ service: 'test', who: 'the port' });
          stream.handle(heard);
          streams.push(stream);
        },
      },
    ],
  });
  cleanups.push(() => port.close());
  return { heard, streams, port, address: `127.0.0.1:${port.port}` };
}

function dial(address: string, hello: Hello = { service: 'test' }, options: Partial<FrameStreamOptions> = {}) {
  const heard = new Heard();
  const stream = dialFrames(address, hello, { ...OPTIONS, ...options }, heard);
  cleanups.push(() => stream.destroy());
  return { heard, stream };
}

const eventually = (what: () => unknown) => expect.poll(what, { timeout: 5_000, interval: 2 });

test('both ends name themselves, then frames of any size go both ways in order', async () => {
  const { heard, streams, address } = await openPort();
  const caller = dial(address, { service: 'test', who: 'a caller' });
  await eventually(() => caller.heard.hellos).toEqual([{ service: 'test', who: 'the port' }]);
  expect(heard.hellos).toEqual([{ service: 'test', who: 'a caller' }]);
  const sizes = [0, 1, 20_000, 5 << 20, 3];
  for (const size of sizes) caller.stream.send(Buffer.alloc(size, size));
  await eventually(() => heard.frames.map(({ length }) => length)).toEqual(sizes);
  expect(heard.frames.every((frame) => frame.equals(Buffer.alloc(frame.length, frame.length)))).toBe(true);
  streams[0]?.send(Buffer.from('back'));
  await eventually(() => caller.heard.frames.map(String)).toEqual(['back']);
});

test('a large frame that comes slowly is a sign of life at both ends, long before it is whole', async () => {
  const clock = new ManualClock({ monotonicMs: 1_000 });
  const { heard, address } = await openPort({ clock });
  const socket = connect(Number(address.split(':')[1]), '127.0.0.1');
  cleanups.push(() => socket.destroy());
  const back: string[] = [];
  const parser = new FrameParser(1_000, (kind) => back.push(kind));
  socket.on('data', (chunk) => parser.push(chunk));
  socket.write(Buffer.concat([OPENING, ...frameBytes('data', Buffer.from('{"service":"test"}'))]));
  await eventually(() => back).toEqual(['data']);
  const [bytes = Buffer.of()] = frameBytes('data', new Uint8Array(1_000));
  for (let i = 0; i < 4; i++) {
    clock.advance(i === 3 ? 10 : 100);
    const before = heard.signs;
    socket.write(bytes.subarray(i * 200, (i + 1) * 200));
    await eventually(() => heard.signs).toBe(before + 1);
  }
  // So often, and no more often.
  await eventually(() => back).toEqual(['data', 'answer', 'answer', 'answer']);
  expect(heard.frames).toEqual([]);
  socket.write(bytes.subarray(800));
  await eventually(() => heard.frames.length).toBe(1);
});

test('a port that takes no more closes who has begun to speak and not named itself, and nobody else', async () => {
  const { port, address } = await openPort();
  const caller = dial(address);
  await eventually(() => caller.heard.hellos.length).toBe(1);
  const socket = connect(port.port, '127.0.0.1');
  cleanups.push(() => socket.destroy());
  let closed = false;
  socket.on('close', () => {
    closed = true;
  });
  socket.on('error', () => undefined);
  // The port has read the opening once it has answered what another one said later.
  socket.write(OPENING);
  await new Promise((resolve) => socket.once('connect', resolve));
  const later = dial(address);
  await eventually(() => later.heard.hellos.length).toBe(1);
  port.refuse();
  await eventually(() => closed).toBe(true);
  expect([caller.heard.ends, later.heard.ends]).toEqual([[], []]);
});

test('a frame of which much waits says so, and tells when it has left', async () => {
  const { address } = await openPort();
  const caller = dial(address);
  await eventually(() => caller.heard.hellos.length).toBe(1);
  let full = false;
  for (let i = 0; i < 16 && !full; i++) full = !caller.stream.send(Buffer.alloc(4 << 20));
  expect(full).toBe(true);
  expect(caller.stream.pendingBytes).toBeGreaterThan(1 << 20);
  await eventually(() => caller.heard.drains).toBeGreaterThan(0);
  expect(caller.stream.pendingBytes).toBe(0);
});

test.each<{ name: string; hello: Hello; end: StreamEnd }>([
  {
    name: 'the service does not want',
    hello: { service: 'test', cluster: 'other' },
    end: { code: 'WRONG_CLUSTER', message: 'not here' },
  },
  {
    name: 'asks for a service that is not there',
    hello: { service: 'other' },
    end: { code: 'UNIMPLEMENTED', message: "there is no service 'other' at this port" },
  },
])('a caller that $name is told why', async ({ hello, end }) => {
  const { address } = await openPort();
  const caller = dial(address, hello);
  await eventually(() => caller.heard.ends).toEqual([end]);
  expect(caller.heard.hellos).toEqual([]);
});

test('what was sent before an end still arrives, then the reason, once', async () => {
  const { heard, address, streams } = await openPort();
  const caller = dial(address);
  await eventually(() => streams.length).toBe(1);
  caller.stream.send(Buffer.from('last'));
  caller.stream.end({ message: 'done' });
  caller.stream.send(Buffer.from('too late'));
  await eventually(() => heard.ends).toEqual([{ message: 'done' }]);
  expect(heard.frames.map(String)).toEqual(['last']);
  expect(caller.heard.ends).toEqual([]);
});

test('a connection that breaks ends the stream without a code', async () => {
  const { port, address } = await openPort();
  const caller = dial(address);
  await eventually(() => caller.heard.hellos.length).toBe(1);
  port.close();
  await eventually(() => caller.heard.ends.length).toBe(1);
  expect(caller.heard.ends[0]?.code).toBeUndefined();
  const nobody = dial(address);
  await eventually(() => nobody.heard.ends[0]?.message).toContain('ECONNREFUSED');
  const nowhere = dial('127.0.0.1:undefined');
  expect(nowhere.heard.ends).toEqual([]);
  await eventually(() => nowhere.heard.ends).toEqual([{ message: "'127.0.0.1:undefined' is not an address" }]);
});

/** All that comes back for these bytes until the port closes the connection. */
function answerTo(port: number, bytes: Uint8Array): Promise<string> {
  return new Promise((resolve) => {
    let answer = '';
    const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
    socket.on('data', (chunk: Buffer) => {
      answer += chunk.toString('latin1');
    });
    socket.on('error', () => undefined);
    socket.on('close', () => resolve(answer));
  });
}

test('who speaks another protocol, or begins without a hello, is told so and sent away', async () => {
  const { heard, port } = await openPort();
  const http = 'GET / HTTP/1.1\r\nhost: a\r\n\r\n';
  expect(await answerTo(port.port, Buffer.from(http))).toContain('Clients use the client port');
  for (const first of ['no words', '[1]', '{"service":1}']) {
    const bytes = Buffer.concat([OPENING, ...frameBytes('data', Buffer.from(first))]);
    expect(await answerTo(port.port, bytes)).toContain('does not start with a hello');
  }
  const large = frameBytes('data', Buffer.alloc(1 << 20))[0] ?? Buffer.alloc(0);
  expect(await answerTo(port.port, Buffer.concat([OPENING, large]))).toContain('a frame of 1048576 bytes');
  expect(heard.hellos).toEqual([]);
});

test('what begins as another kind of connection is given on from its first byte, and may take its time from then on', async () => {
  const clock = new ManualClock();
  let given = 0;
  const { heard, port, address } = await openPort({
    ...{ clock, probeMs: 100, probeTimeoutMs: 50 },
    others: [
      {
        begins: [Buffer.from('REMOTE CONTROL')],
        take(socket) {
          given++;
          socket.on('data', (chunk: Buffer) => socket.write(chunk));
          socket.resume();
        },
      },
    ],
    purpose: 'Not for you.',
  });
  const socket = connect(port.port, '127.0.0.1', () => socket.write('REMOTE'));
  cleanups.push(() => socket.destroy());
  socket.on('error', () => undefined);
  let echoed = '';
  socket.on('data', (chunk: Buffer) => {
    echoed += String(chunk);
  });
  await eventually(() => echoed).toBe('REMOTE');
  clock.advance(1_000);
  socket.write(' CALL');
  await eventually(() => echoed).toBe('REMOTE CALL');
  dial(address);
  await eventually(() => heard.hellos.length).toBe(1);
  expect(await answerTo(port.port, Buffer.from('REMIND ME\r\n'))).toContain('Not for you.');
  expect(given).toBe(1);
});

test('connections that begin alike are recognized by the first byte in which they differ', async () => {
  const taken: string[] = [];
  const kind = (name: string, ...begins: readonly string[]) => ({
    begins: begins.map((begin) => Buffer.from(begin)),
    take(socket: Socket) {
      socket.once('data', (chunk: Buffer) => {
        taken.push(`${name} ${chunk}`);
        socket.end();
      });
      socket.resume();
    },
  });
  const { port } = await openPort({ others: [kind('one', 'PRI * '), kind('two', 'GET ', 'PUT ', 'POST ')] });
  const say = async (...pieces: readonly string[]): Promise<void> => {
    const socket = connect(port.port, '127.0.0.1');
    cleanups.push(() => socket.destroy());
    socket.on('error', () => undefined).resume();
    for (const piece of pieces) {
      socket.write(piece);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  await say('P', 'U', 'T /');
  await say('P', 'RI');
  await say('G');
  await eventually(() => taken.length).toBe(3);
  expect(taken).toEqual(['two PU', 'one PRI', 'two G']);
  expect(await answerTo(port.port, Buffer.from('PATCH /\r\n'))).toContain('This port is for');
});

test('a port that refuses ends what has not begun to speak, takes nothing new, and leaves the others', async () => {
  const { heard, port, address } = await openPort();
  let closed = false;
  const silent = connect(port.port, '127.0.0.1', () => silent.write(OPENING.subarray(0, 3)));
  cleanups.push(() => silent.destroy());
  silent.on('error', () => undefined);
  silent.on('close', () => {
    closed = true;
  });
  silent.resume();
  const caller = dial(address);
  await eventually(() => caller.heard.hellos.length).toBe(1);
  port.refuse();
  await eventually(() => closed).toBe(true);
  const late = dial(address);
  await eventually(() => late.heard.ends[0]?.message).toContain('ECONNREFUSED');
  caller.stream.send(Buffer.from('still here'));
  await eventually(() => heard.frames.map(String)).toEqual(['still here']);
});

test('who probes and does not read makes nothing wait: what it has not read yet will tell it as much', async () => {
  const { heard, streams, port } = await openPort();
  const opening = Buffer.concat([OPENING, ...frameBytes('data', Buffer.from('{"service":"test"}'))]);
  const socket = connect(port.port, '127.0.0.1', () => socket.write(opening));
  cleanups.push(() => socket.destroy());
  await eventually(() => streams.length).toBe(1);
  while (streams[0]?.send(Buffer.alloc(1 << 20)));
  const waits = streams[0]?.pendingBytes ?? 0;
  const probe = Buffer.concat(frameBytes('probe', Buffer.alloc(0)));
  socket.write(Buffer.concat([...new Array<Buffer>(10_000).fill(probe), ...frameBytes('data', Buffer.of(1))]));
  await eventually(() => heard.frames.length).toBe(1); // and so it has seen the probes
  expect(streams[0]?.pendingBytes).toBeLessThanOrEqual(waits);
});

test('a probe is answered', async () => {
  const { port } = await openPort();
  const hello = frameBytes('data', Buffer.from('{"service":"test"}'));
  const [probe, answer, end] = (['probe', 'answer', 'end'] as const).map((kind) =>
    Buffer.concat(frameBytes(kind, Buffer.alloc(0))),
  );
  const bytes = Buffer.concat([OPENING, ...hello, probe ?? '', end ?? ''].map((part) => Buffer.from(part)));
  expect(await answerTo(port.port, bytes)).toMatch(new RegExp(`${answer?.toString('latin1')}$`));
});

test('a peer that says something lives; one that is silent is probed, and gone if it does not answer', async () => {
  const clock = new ManualClock();
  const { heard, streams, address } = await openPort();
  const caller = dial(address, { service: 'test' }, { clock, probeMs: 100, probeTimeoutMs: 50 });
  await eventually(() => caller.heard.hellos.length).toBe(1);
  for (let i = 1; i <= 10; i++) {
    clock.advance(100);
    streams[0]?.send(Buffer.of(i));
    await eventually(() => caller.heard.frames.length).toBe(i);
  }
  clock.advance(200);
  expect(caller.heard.ends).toEqual([]);
  clock.advance(50); // nothing is read meanwhile: the answer does not get through
  expect(caller.heard.ends).toEqual([{ message: 'the peer does not answer' }]);
  await eventually(() => heard.ends.length).toBe(1);
});

test('who hears and has nothing to say gives signs of life unasked: a probe may stand behind what is on its way', async () => {
  const clock = new ManualClock();
  const { heard, port } = await openPort({ clock, probeMs: 100, probeTimeoutMs: 50 });
  const opening = Buffer.concat([OPENING, ...frameBytes('data', Buffer.from('{"service":"test"}'))]);
  const socket = connect(port.port, '127.0.0.1', () => socket.write(opening));
  cleanups.push(() => socket.destroy());
  const answers: string[] = [];
  const parser = new FrameParser(1 << 20, (kind) => answers.push(kind));
  socket.on('data', (chunk: Buffer) => parser.push(chunk));
  await eventually(() => answers).toContain('data'); // its hello
  for (let signs = 1; signs <= 3; signs++) {
    socket.write(Buffer.concat(frameBytes('data', Buffer.of(signs)))); // never a probe
    await eventually(() => heard.frames.length).toBe(signs);
    clock.advance(100);
    await eventually(() => answers.filter((kind) => kind === 'answer').length).toBe(signs - 1); // the first look hears a hello
  }
});

test.each<{ name: string; says: Buffer; helloMs?: number }>([
  { name: 'says nothing', says: Buffer.of() },
  { name: 'says nothing to a port that waits for a hello', says: Buffer.of(), helloMs: 20 },
  { name: 'speaks another protocol, and does not close its end', says: Buffer.from('GET / HTTP/1.1\r\n\r\n') },
  { name: 'gives signs of life and no hello', says: Buffer.concat([OPENING, ...frameBytes('answer', Buffer.of())]) },
])('a connection that $name is closed after the time in which a peer must answer', async ({ says, helloMs = 150 }) => {
  const clock = new ManualClock();
  const asked = helloMs === 150 ? {} : { helloMs };
  const { port, address } = await openPort({ clock, probeMs: 100, probeTimeoutMs: 50, ...asked });
  const socket = connect({ port: port.port, host: '127.0.0.1', allowHalfOpen: true }, () => socket.write(says));
  cleanups.push(() => socket.destroy());
  socket.on('error', () => undefined);
  socket.resume();
  let closed = false;
  socket.on('close', () => {
    closed = true;
  });
  const dialled = dial(address);
  await eventually(() => dialled.heard.hellos.length).toBe(1); // and so the port has taken the one before
  expect(closed).toBe(false);
  clock.advance(helloMs);
  await eventually(() => {
    socket.write('more'); // nobody is there to read it
    return closed;
  }).toBe(true);
});
