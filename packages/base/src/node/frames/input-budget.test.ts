import { connect, type Socket } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { ManualClock } from '../../testing/manual-clock.ts';
import { nodeClock } from '../node-clock.ts';
import { addressKey } from './address-key.ts';
import { frameBytes } from './frame-parser.ts';
import { dialFrames, type FramePort, OPENING, openFramePort } from './frame-port.ts';
import { InputBudget, type InputLimits } from './input-budget.ts';

const LIMITS: InputLimits = {
  connectionsMax: 5,
  connectionsPerAddressMax: 3,
  bytesMax: 100,
  bytesPerAddressMax: 60,
  messageMs: 10_000,
};

function setUp(limits: Partial<InputLimits> = {}) {
  const clock = new ManualClock();
  const logged: unknown[] = [];
  const budget = new InputBudget({ ...LIMITS, ...limits }, clock, { warn: (fields) => logged.push(fields) });
  const closed: string[] = [];
  const admit = (address: string, name: string) => budget.admit(address, () => closed.push(name));
  return { clock, logged, budget, closed, admit };
}

describe('a budget for unfinished input', () => {
  test('takes so many connections from one address, so many in all, and more when some have left (IB1)', () => {
    const { budget, admit } = setUp();
    const fromA = ['1', '2', '3'].map((name) => admit('10.0.0.1', name));
    expect(admit('10.0.0.1', '4')).toBeUndefined();
    expect([admit('10.0.0.2', '5'), admit('10.0.0.3', '6')]).not.toContain(undefined);
    expect(admit('10.0.0.4', '7')).toBeUndefined();
    expect(budget.stats).toMatchObject({ connections: 5, closed: { connections: 1, address_connections: 1 } });
    fromA[0]?.end();
    fromA[0]?.end(); // twice is once
    expect(budget.stats.connections).toBe(4);
    expect(admit('10.0.0.4', '8')).toBeDefined();
  });

  test('closes, of an address that holds too much, the connection whose frame began first (IB2)', () => {
    const { budget, admit, closed } = setUp();
    const [one, two, other] = [admit('10.0.0.1', 'one'), admit('10.0.0.1', 'two'), admit('10.0.0.2', 'other')];
    other?.unfinished(30, 0);
    one?.unfinished(10, 0);
    two?.unfinished(10, 0);
    one?.unfinished(40, 0);
    expect(closed).toEqual([]);
    two?.unfinished(25, 0);
    expect(closed).toEqual(['one']);
    expect(budget.stats).toMatchObject({ unfinishedBytes: 55, closed: { address_bytes: 1 } });
  });

  test('a frame that is whole counts no more, and the next one begins anew (IB2)', () => {
    const { budget, admit, closed } = setUp();
    const [one, two] = [admit('10.0.0.1', 'one'), admit('10.0.0.1', 'two')];
    one?.unfinished(30, 0);
    two?.unfinished(20, 0);
    one?.unfinished(20, 1); // in one piece with the end of the frame before
    two?.unfinished(50, 0);
    expect(closed).toEqual(['two']);
    one?.unfinished(0, 2);
    expect(budget.stats.unfinishedBytes).toBe(0);
  });

  test('closes, when all hold too much, a connection of the address that holds the most (IB2)', () => {
    const { budget, admit, closed } = setUp({ bytesMax: 80 });
    const [a, b] = [admit('10.0.0.1', 'a'), admit('10.0.0.2', 'b')];
    a?.unfinished(30, 0);
    b?.unfinished(45, 0);
    a?.unfinished(36, 0);
    expect(closed).toEqual(['b']);
    expect(budget.stats).toMatchObject({ unfinishedBytes: 36, closed: { bytes: 1 } });
  });

  test('closes a connection whose frame is not whole in time, and none whose frames come and go (IB3)', () => {
    const { clock, admit, closed } = setUp();
    const [slow, busy] = [admit('10.0.0.1', 'slow'), admit('10.0.0.1', 'busy')];
    slow?.unfinished(1, 0);
    for (let i = 0; i < 100; i++) {
      busy?.unfinished(1, i);
      slow?.unfinished(2 + (i % 10), 0);
      clock.advance(90);
    }
    expect(closed).toEqual([]);
    for (let i = 100; i < 130; i++) {
      busy?.unfinished(1, i);
      clock.advance(90);
    }
    expect(closed).toEqual(['slow']);
  });

  test('says what it closes once a minute for each reason, with how much it did not say (IB4)', () => {
    const { clock, logged, budget, admit } = setUp({ connectionsMax: 0 });
    for (let i = 0; i < 1_000; i++) admit('10.0.0.1', 'x');
    expect(logged).toEqual([expect.objectContaining({ reason: 'connections', address: '10.0.0.1' })]);
    clock.advance(60_000);
    admit('10.0.0.1', 'x');
    expect(logged[1]).toMatchObject({ unlogged: 999 });
    expect(budget.stats.closed.connections).toBe(1_001);
  });
});

test.each([
  ['10.0.0.1', '10.0.0.1'],
  ['::ffff:10.0.0.1', '10.0.0.1'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
  ['2001:db8:1:2::9', '2001:db8:1:2::/64'],
  ['2001:0db8:0001:0002::9', '2001:db8:1:2::/64'],
  ['2001:DB8::9', '2001:db8:0:0::/64'],
  ['::1', '0:0:0:0::/64'],
  ['fe80::1%eth0', 'fe80:0:0:0::/64'],
  [undefined, ''],
])('connections from %s are counted for %s', (address, key) => {
  expect(addressKey(address)).toBe(key);
});

describe('a port', () => {
  const cleanups: (() => void)[] = [];
  afterEach(() => {
    for (const clean of cleanups.splice(0).reverse()) clean();
  });

  /** One that answers each frame with it, and trusts those who say so. */
  async function echoing(input: Partial<InputLimits>): Promise<FramePort> {
    const port = await openFramePort({
      ...{ clock: nodeClock(), host: '127.0.0.1', port: 0, frameBytesMax: 1 << 20, input },
      services: [
        {
          name: 'echo',
          open(hello, stream) {
            stream.sayHello({ service: 'echo' });
            if (hello.trusted === 'yes') stream.trust();
            stream.handle({ onFrame: (frame) => stream.send(frame), onDrain() {}, onEnd() {} });
          },
        },
      ],
    });
    cleanups.push(() => port.close());
    return port;
  }

  /** Says hello, and the first `bytes` of a frame of a MiB. */
  function begin(port: FramePort, bytes: number, from = '127.0.0.1', hello = '{"service":"echo"}'): Promise<Socket> {
    const [head = Buffer.alloc(0)] = frameBytes('data', Buffer.alloc(1 << 20));
    const said = [OPENING, ...frameBytes('data', Buffer.from(hello)), head, Buffer.alloc(bytes - head.length)];
    return new Promise((resolve) => {
      const socket = connect({ port: port.port, host: '127.0.0.1', localAddress: from });
      cleanups.push(() => socket.destroy());
      socket.on('error', () => resolve(socket)); // closed: what the port does with many
      socket.on('close', () => resolve(socket));
      socket.resume();
      socket.write(Buffer.concat(said), () => resolve(socket));
    });
  }

  /** A client that goes on being served: how many of its calls were answered. */
  function client(port: FramePort) {
    const heard = { answers: 0, over: false };
    const call = (): void => void stream.send(Buffer.alloc(50_000, 1));
    const stream = dialFrames(
      `127.0.0.1:${port.port}`,
      { service: 'echo' },
      { clock: nodeClock() },
      {
        onHello: call,
        onFrame() {
          heard.answers++;
          setImmediate(call);
        },
        onDrain() {},
        onEnd() {
          heard.over = true;
        },
      },
    );
    cleanups.push(() => stream.destroy());
    return heard;
  }

  test('keeps little of thousands of connections with partial frames, and goes on serving others at the same address', async () => {
    const bytesMax = 4 << 20;
    const port = await echoing({ bytesMax, bytesPerAddressMax: bytesMax, connectionsPerAddressMax: 600 });
    const served = client(port);
    await expect.poll(() => served.answers).toBeGreaterThan(0);
    let most = 0;
    for (let round = 0; round < 30; round++) {
      await Promise.all(Array.from({ length: 100 }, () => begin(port, 60_000)));
      most = Math.max(most, port.input.unfinishedBytes);
      const { answers } = served;
      await expect.poll(() => served.answers).toBeGreaterThan(answers);
    }
    expect(most).toBeGreaterThan(1 << 20);
    expect(most).toBeLessThanOrEqual(bytesMax);
    expect(port.input.connections).toBeLessThanOrEqual(600);
    expect(port.input.closed.address_bytes).toBeGreaterThan(1_000);
    expect(served.over).toBe(false);
  });

  test('takes no more than its connections from one address, and others from another one', async () => {
    const port = await echoing({ connectionsPerAddressMax: 20 });
    await Promise.all(Array.from({ length: 200 }, () => begin(port, 10, '127.0.0.2')));
    await expect.poll(() => port.input.closed.address_connections).toBe(180);
    const served = client(port);
    await expect.poll(() => served.answers).toBeGreaterThan(0);
  });

  test('does not count what it trusts (IB5)', async () => {
    const port = await echoing({ bytesMax: 100_000, bytesPerAddressMax: 50_000 });
    const trusted = await begin(port, 500_000, '127.0.0.1', '{"service":"echo","trusted":"yes"}');
    await expect.poll(() => port.input.connections).toBe(0);
    await Promise.all(Array.from({ length: 10 }, () => begin(port, 40_000)));
    await expect.poll(() => port.input.closed.address_bytes).toBeGreaterThan(5);
    expect(trusted.destroyed).toBe(false);
  });
});
