// What methods may do to a call: pause it, throw in its handlers.
import { describe, expect, test, vi } from 'vitest';
import { ECHO, ECHOES } from '../../test/support/echo-service.ts';
import {
  dataFrame,
  FrameClient,
  headersFrame,
  message,
  numberFrame,
  unaryCall,
} from '../../test/support/frame-client.ts';
import { FLAG, FRAME } from '../../test/support/frames.ts';
import { ManualTimers } from '../../test/support/manual-timers.ts';
import { GrpcServer } from './grpc-server.ts';
import type { Implementation } from './implementation.ts';
import type { StreamCall } from './stream-call.ts';

type Call = StreamCall<Buffer, Buffer>;

function setUp(methods: Partial<Implementation<typeof ECHO>>) {
  const errors: unknown[] = [];
  const timers = new ManualTimers();
  const server = new GrpcServer({ timers, onMethodError: (error) => errors.push(error) });
  server.addService(ECHO, { ...ECHOES, ...methods });
  return { errors, server, timers, client: FrameClient.of(server).greet() };
}

const BOTH = { ':path': ECHO.both.path };

describe('a client that does not read', () => {
  const MESSAGE = Buffer.alloc(100);

  test('is behind only when much waits for it, and has caught up when all of that is sent (SR3)', async () => {
    const calls: Call[] = [];
    const { client } = setUp({ both: (call: Call) => void calls.push(call) });
    client.send(headersFrame(1, BOTH));
    await client.settle();
    const [call] = calls;
    if (call === undefined) return expect.fail('the call did not arrive');
    let drained = 0;
    call.onDrain = () => drained++;
    // Its window takes about 600 of these. A thousand more are no reason to hold events back.
    for (let i = 0; i < 1_600; i++) expect(call.write(MESSAGE)).toBe(true);
    let more = 0;
    while (call.write(MESSAGE) && more < 10_000) more++;
    expect(more).toBeLessThan(5_000);
    expect([call.unread() > 1_000, drained]).toEqual([true, 0]);
    client.send(numberFrame(FRAME.windowUpdate, 1, 1 << 24), numberFrame(FRAME.windowUpdate, 0, 1 << 24));
    await client.settle();
    expect([call.unread(), drained]).toEqual([0, 1]);
  });
});

describe('a paused call', () => {
  /** Takes one request at a time. */
  function oneByOne() {
    const got: string[] = [];
    const calls: Call[] = [];
    const both = (call: Call): void => {
      calls.push(call);
      call.onRequest = (request) => {
        got.push(String(request));
        call.pause();
      };
    };
    return { got, calls, both };
  }

  test('is resumed at a cost that does not grow with what has arrived (SR1)', async () => {
    const { got, calls, both } = oneByOne();
    const { client } = setUp({ both });
    const requests = Array.from({ length: 1_000 }, (_, i) => message(String(i).padStart(4, '0')));
    client.send(headersFrame(1, BOTH));
    for (const octet of Buffer.concat(requests)) client.send(dataFrame(1, Buffer.from([octet])));
    await client.settle();
    expect(got).toEqual(['0000']);
    const copies = vi.spyOn(Buffer, 'from');
    for (let i = 1; i < 1_000; i++) calls[0]?.resume();
    expect(copies.mock.calls.length).toBeLessThan(2_000);
    copies.mockRestore();
    expect(got).toHaveLength(1_000);
    expect(got.at(-1)).toBe('0999');
  });

  test('keeps what arrives in little more memory than it counts', async () => {
    const { both } = oneByOne();
    const { client, server } = setUp({ both });
    client.send(headersFrame(1, BOTH), dataFrame(1, message('0')));
    for (let i = 0; i < 20_000; i++) client.send(dataFrame(1, Buffer.alloc(1)));
    await client.settle();
    expect(server.held.unfinishedBytes).toBeGreaterThanOrEqual(20_000);
    expect(server.held.unfinishedBytes).toBeLessThan(100_000);
    client.send(numberFrame(FRAME.rstStream, 1, 8));
    await client.settle();
    expect(server.held).toMatchObject({ streams: 0, unfinishedBytes: 0 });
  });

  test('learns of the end of requests once, even if it pauses afterwards', async () => {
    let ends = 0;
    const calls: Call[] = [];
    const both = (call: Call): void => {
      calls.push(call);
      call.onHalfClose = () => {
        ends++;
        call.pause();
      };
    };
    const down = (call: Call): void => {
      calls.push(call);
      call.onRequest = () => {
        ends++;
        call.pause();
      };
    };
    const { client } = setUp({ both, down });
    client.send(headersFrame(1, BOTH), dataFrame(1, message('x'), FLAG.endStream));
    client.send(headersFrame(3, { ':path': ECHO.down.path }), dataFrame(3, message('x'), FLAG.endStream));
    await client.settle();
    expect(ends).toBe(2);
    for (const call of calls) call.resume();
    expect(ends).toBe(2);
  });
});

describe('a handler that throws', () => {
  const failure = new Error('a handler failed');
  const fail = (): never => {
    throw failure;
  };

  test('when its call is cancelled harms no other call, whatever ends the call (SC3)', async () => {
    let cancelled = 0;
    const both = (call: Call): void => {
      call.onCancelled = () => {
        cancelled++;
        fail();
      };
    };
    const { client, server, errors, timers } = setUp({ both });
    const call = (id: number, more = {}): Buffer => headersFrame(id, { ...BOTH, ...more });
    client.send(call(1), call(3), call(5, { 'grpc-timeout': '100m' }), call(7), call(9));
    client.send(numberFrame(FRAME.rstStream, 1, 8), dataFrame(3, Buffer.from('00ffffffff', 'hex')), unaryCall(11, 'x'));
    await client.settle();
    timers.advance(200);
    await client.settle();
    expect(client.data(11)).toEqual(message('x'));
    expect([cancelled, server.held.streams]).toEqual([3, 2]);
    client.socket.destroy();
    await client.settle();
    expect([cancelled, errors.length]).toEqual([5, 5]);
    expect(server.held).toEqual({ connections: 0, streams: 0, unfinishedBytes: 0, outputBytes: 0 });
  });

  test('that has thrown before gets no event twice', async () => {
    const both = (call: Call): void => {
      call.onCancelled = fail;
      call.onRequest = fail;
    };
    const { client, errors } = setUp({ both });
    client.send(headersFrame(1, BOTH), dataFrame(1, message('x')), unaryCall(3, 'y'));
    await client.settle();
    expect(client.headers(1).at(-1)).toContain('grpc-status: 13');
    expect([client.data(3), errors]).toEqual([message('y'), [failure, failure]]);
  });
});
