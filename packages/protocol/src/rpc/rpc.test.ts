import { type Bytes, InvariantError, ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { describe, expect, test } from 'vitest';
import { countTo, echo, silent } from '../../test/support/rpc-methods.ts';
import { createMemoryLink } from '../testing/memory-link.ts';
import { LinkCaller } from './caller.ts';
import { encodeFrame } from './frame.ts';
import type { FrameLink, FrameReceiver } from './link.ts';
import { createLocalChannel } from './local-channel.ts';
import { createRpcRegistry } from './registry.ts';
import type { RpcChannel, StreamContext } from './rpc.ts';
import { DEFAULT_SERVER_LIMITS, HeldBytes, type ServerLimits, serveLink } from './server.ts';

interface Outcome {
  error: string | undefined;
  reply: string | undefined;
  calls: number;
}

function setUp(options: { callsMax?: number; serverLimits?: Partial<ServerLimits>; serve?: boolean } = {}) {
  const clock = new ManualClock();
  const registry = createRpcRegistry();
  const canceled: string[] = [];
  registry.handle(echo, (text, _context, done) => {
    if (text === 'fail') throw new ServiceError('LOCK_BUSY', 'taken', { details: { holder: 'x', term: 7 } });
    done(undefined, text);
  });
  registry.handle(silent, (text, context) => context.onCancel(() => canceled.push(text)));
  const pair = createMemoryLink(clock);
  const frames: number[] = [];
  const busy: string[] = [];
  const malformed: string[] = [];
  const counted = countFrames(pair.client, frames);
  const caller = new LinkCaller({
    link: counted,
    clock,
    limits: { callsMax: options.callsMax ?? 100, queueBytesMax: 1 << 20, requestBytesMax: 800_000 },
  });
  if (options.serve !== false) {
    serveLink({
      link: pair.server,
      registry,
      clock,
      caller: { kind: 'node', nodeId: 3 },
      limits: { ...DEFAULT_SERVER_LIMITS, ...options.serverLimits },
      onBusy: () => busy.push('refused'),
      onMalformed: () => malformed.push('refused'),
    });
  }
  return { clock, registry, pair, caller, canceled, frames, busy, malformed };
}

function countFrames(link: FrameLink, frames: number[]): FrameLink {
  return {
    start: (receiver) => link.start(receiver),
    send(frame) {
      frames.push(frame.length);
      return link.send(frame);
    },
    close: (reason) => link.close(reason),
  };
}

function callEcho(channel: RpcChannel, text: string, method = echo, timeoutMs = 1_000): Outcome {
  const outcome: Outcome = { error: undefined, reply: undefined, calls: 0 };
  channel.call(method, text, { timeoutMs }, (error, reply) => {
    outcome.error = error?.code;
    outcome.reply = reply;
    outcome.calls++;
  });
  return outcome;
}

function callEchoed(clock: ManualClock, caller: LinkCaller): string | undefined {
  const outcome = callEcho(caller, 'again');
  clock.advance(1);
  return outcome.reply;
}

describe('calls over a link', () => {
  test('all calls of one turn travel in one frame, and each gets its own answer', () => {
    const { clock, caller, frames } = setUp();
    clock.advance(1);
    const outcomes = ['a', 'b', 'c'].map((text) => callEcho(caller, text));
    clock.advance(1);
    expect(frames.length).toBe(1);
    expect(outcomes.map((o) => o.reply)).toEqual(['a', 'b', 'c']);
    expect(caller.outstanding).toBe(0);
  });

  test('an error travels with code, message and details', () => {
    const { clock, caller } = setUp();
    let seen: ServiceError | undefined;
    caller.call(echo, 'fail', { timeoutMs: 100 }, (error) => {
      seen = error;
    });
    clock.advance(1);
    expect(seen).toMatchObject({ code: 'LOCK_BUSY', message: 'taken', details: { holder: 'x', term: 7 } });
  });

  test('a method that is not registered is UNIMPLEMENTED', () => {
    const { clock, caller } = setUp();
    const outcome = callEcho(caller, 'x', { ...echo, name: 'test.unknown' });
    clock.advance(1);
    expect(outcome.error).toBe('UNIMPLEMENTED');
  });

  test('a method that is registered after it was asked for is served on the same link', () => {
    const { clock, caller, registry } = setUp();
    const later = { ...echo, name: 'test.later' };
    const early = callEcho(caller, 'x', later);
    clock.advance(1);
    registry.handle(later, (text, _context, done) => done(undefined, text));
    const late = callEcho(caller, 'y', later);
    clock.advance(1);
    expect([early.error, late.reply]).toEqual(['UNIMPLEMENTED', 'y']);
  });

  test('a request that does not decode is INVALID_ARGUMENT, is counted, and leaves the link alone', () => {
    const { clock, caller, malformed } = setUp();
    const bad = callEcho(caller, 'x', { ...echo, encodeRequest: () => 42 });
    const good = callEcho(caller, 'y');
    clock.advance(1);
    expect([bad.error, good.reply, malformed]).toEqual(['INVALID_ARGUMENT', 'y', ['refused']]);
  });

  test('a call that was sent and never answered times out as UNKNOWN_OUTCOME and is cancelled at the server', () => {
    const { clock, caller, canceled } = setUp();
    const outcome = callEcho(caller, 'q', silent, 500);
    clock.advance(490);
    expect(outcome.calls).toBe(0);
    clock.advance(70);
    expect(outcome).toEqual({ error: 'UNKNOWN_OUTCOME', reply: undefined, calls: 1 });
    clock.advance(1);
    expect(canceled).toEqual(['q']);
    clock.advance(500);
    expect(clock.pendingTimers).toBe(0);
  });

  test('a peer that gives no sign of life is given up long before a long call times out (C4)', () => {
    const { clock, pair, caller } = setUp();
    clock.advance(1);
    const outcome = callEcho(caller, 'q', silent, 60_000);
    clock.advance(1);
    pair.stall(true);
    for (let i = 0; i < 100 && outcome.calls === 0; i++) clock.advance(50);
    expect(outcome).toEqual({ error: 'UNKNOWN_OUTCOME', reply: undefined, calls: 1 });
  });

  test('a call that may be made elsewhere ends when the peer gives no sign of life for a moment; the link stays (C5)', () => {
    const { clock, pair, caller } = setUp();
    clock.advance(1);
    const errors: (ServiceError | undefined)[] = [];
    const ask = (movable: boolean) => {
      caller.call(silent, 'q', { timeoutMs: 60_000, movable }, (error) => errors.push(error));
    };
    ask(true);
    ask(false);
    for (let i = 0; i < 50; i++) clock.advance(100); // it is silent about both, and alive
    expect(errors).toEqual([]);
    pair.stall(true);
    clock.advance(100);
    expect(errors).toEqual([]);
    clock.advance(350);
    expect(errors).toMatchObject([{ code: 'UNKNOWN_OUTCOME', details: { mute: true } }]);
    pair.stall(false);
    clock.advance(1);
    expect(callEchoed(clock, caller)).toBe('again');
    expect(caller.outstanding).toBe(1);
  });

  test('a peer is not given up for what came in while this process stood still (C4)', () => {
    for (const askedBefore of [1_000, 1_700, 2_400]) {
      const clock = new ManualClock();
      let stoodStillMs = 0;
      const late = {
        wallMs: () => clock.wallMs(),
        monotonicMs: () => clock.monotonicMs() + stoodStillMs,
        setTimer: (delayMs: number, fn: () => void) => clock.setTimer(delayMs, fn),
        setImmediate: (fn: () => void) => clock.setImmediate(fn),
      };
      const pair = createMemoryLink(clock);
      const registry = createRpcRegistry();
      registry.handle(silent, () => {});
      serveLink({ link: pair.server, registry, clock, caller: { kind: 'node', nodeId: 3 } });
      const caller = new LinkCaller({ link: pair.client, clock: late });
      clock.advance(1);
      const outcome = callEcho(caller, 'q', silent, 60_000);
      clock.advance(1);
      pair.stall(true);
      clock.advance(askedBefore);
      // The timers of the time that was missed run before anything is read.
      stoodStillMs = 10_000;
      clock.advance(500);
      expect(outcome.calls).toBe(0);
      pair.stall(false);
      clock.advance(8_000);
      expect(outcome.calls).toBe(0);
    }
  });

  test('a peer that has as many calls open as it may is asked for a sign of life all the same (C4)', () => {
    const { clock, caller } = setUp({ callsMax: 2 });
    clock.advance(1);
    const outcomes = ['a', 'b'].map((text) => callEcho(caller, text, silent, 60_000));
    clock.advance(20_000);
    expect(outcomes.map(({ calls }) => calls)).toEqual([0, 0]);
  });

  test('a peer that takes in what is sent to it is alive, however long that takes (C4)', () => {
    const clock = new ManualClock();
    let sent = 0;
    const link: FrameLink = {
      start(receiver) {
        clock.setImmediate(() => receiver.onOpen());
        const drain = (): void => {
          receiver.onDrain();
          clock.setTimer(1_000, drain);
        };
        clock.setTimer(1_000, drain);
      },
      send() {
        sent++;
        return false;
      },
      close() {},
    };
    const caller = new LinkCaller({ link, clock });
    const outcomes = Array.from({ length: 10 }, () => callEcho(caller, 'x'.repeat(1 << 20), silent, 60_000));
    clock.advance(9_000);
    expect(sent).toBeGreaterThan(5);
    expect(outcomes.every(({ calls }) => calls === 0)).toBe(true);
  });

  test('a peer of whose large answer a part comes every now and then is alive (C4, C5)', () => {
    const clock = new ManualClock();
    let receiver: FrameReceiver | undefined;
    const link: FrameLink = {
      start(attached) {
        receiver = attached;
        clock.setImmediate(() => attached.onOpen());
      },
      send: () => true,
      close() {},
    };
    const caller = new LinkCaller({ link, clock });
    const errors: (ServiceError | undefined)[] = [];
    for (const movable of [true, false]) {
      caller.call(silent, 'q', { timeoutMs: 60_000, movable }, (error) => errors.push(error));
    }
    for (let i = 0; i < 100; i++) {
      clock.advance(100);
      receiver?.onHeard?.();
    }
    expect(errors).toEqual([]);
    for (let i = 0; i < 100; i++) clock.advance(100);
    expect(errors.length).toBe(2);
  });

  test('a peer that is only quiet is not given up while it answers when asked (C4)', () => {
    const { clock, caller } = setUp();
    clock.advance(1);
    const outcome = callEcho(caller, 'q', silent, 60_000);
    for (let i = 0; i < 400; i++) clock.advance(50);
    expect(outcome.calls).toBe(0);
    expect(callEcho(caller, 'a').error).toBeUndefined();
  });

  test('a broken link answers what was sent with UNKNOWN_OUTCOME and what was not with UNAVAILABLE', () => {
    const { clock, pair, caller } = setUp();
    const sent = callEcho(caller, 'sent', silent);
    clock.advance(1);
    const unsent = callEcho(caller, 'unsent', silent);
    pair.sever();
    expect([sent.error, unsent.error]).toEqual(['UNKNOWN_OUTCOME', 'UNAVAILABLE']);
    expect(callEcho(caller, 'late').error).toBe('UNAVAILABLE');
    clock.advance(2_000);
    expect([sent.calls, unsent.calls]).toEqual([1, 1]);
  });

  test('handlers hear when the link breaks', () => {
    const { clock, pair, caller, canceled } = setUp();
    callEcho(caller, 'q', silent);
    clock.advance(1);
    pair.sever();
    expect(canceled).toEqual(['q']);
  });

  test('a handler that asks to hear of the end when that has come hears of it at once', () => {
    const { clock, registry, caller } = setUp();
    let waited = (): void => {};
    let heard = 0;
    registry.handle({ ...silent, name: 'test.waits' }, (_text, context) => {
      waited = () => context.onCancel(() => heard++);
    });
    const call = caller.call({ ...silent, name: 'test.waits' }, 'q', { timeoutMs: 10_000 }, () => {});
    clock.advance(1);
    call.cancel();
    clock.advance(1);
    waited();
    expect(heard).toBe(1);
  });

  test('who answers another call as it hears that the link broke gives back its bytes once', () => {
    const held = new HeldBytes(1_000);
    const clock = new ManualClock();
    const pair = createMemoryLink(clock);
    const registry = createRpcRegistry();
    const answers: (() => void)[] = [];
    registry.handle(silent, (text, context, done) => {
      answers.push(() => done(undefined, text));
      context.onCancel(() => {
        for (const answer of answers) answer();
      });
    });
    serveLink({ link: pair.server, registry, clock, caller: { kind: 'node', nodeId: 3 }, held });
    const caller = new LinkCaller({ link: pair.client, clock });
    for (const text of ['a', 'b']) callEcho(caller, text, silent);
    clock.advance(1);
    expect(held.bytes).toBeGreaterThan(0);
    pair.sever();
    expect(held.bytes).toBe(0);
  });

  test('each call is told once that its time is over, also when the first of them to be told ends the link (C1)', () => {
    const { clock, caller } = setUp();
    const told: string[] = [];
    for (const text of ['a', 'b']) {
      caller.call(silent, text, { timeoutMs: 100 }, () => {
        told.push(text);
        caller.close(new ServiceError('UNAVAILABLE', 'ended'));
      });
    }
    clock.advance(300);
    expect(told.sort()).toEqual(['a', 'b']);
  });

  test('each call that may be made elsewhere is told so once, also when the first of them ends the link (C1, C5)', () => {
    const { clock, pair, caller } = setUp();
    clock.advance(1);
    const told: string[] = [];
    for (const text of ['a', 'b']) {
      caller.call(silent, text, { timeoutMs: 60_000, movable: true }, () => {
        told.push(text);
        caller.close(new ServiceError('UNAVAILABLE', 'ended'));
      });
    }
    clock.advance(1);
    pair.stall(true);
    for (let i = 0; i < 10; i++) clock.advance(50);
    expect(told.sort()).toEqual(['a', 'b']);
  });

  test('what is cancelled by one that is told of a broken link is told nothing (C1)', () => {
    const { clock, registry, pair, caller } = setUp();
    registry.handleStream(countTo, () => ({ onMessage() {}, onClose() {} }));
    const told: string[] = [];
    caller.call(silent, 'a', { timeoutMs: 1_000 }, () => {
      told.push('a');
      call.cancel();
      stream.cancel();
    });
    const call = caller.call(silent, 'b', { timeoutMs: 1_000 }, () => told.push('b'));
    const stream = caller.openStream(
      countTo,
      1,
      () => {},
      () => told.push('stream'),
    );
    clock.advance(1);
    pair.sever();
    expect(told).toEqual(['a']);
  });

  test('a call cancelled in its own turn never leaves', () => {
    const { clock, caller, frames } = setUp();
    clock.advance(1);
    callEcho(caller, 'first');
    clock.advance(1);
    frames.length = 0;
    let called = false;
    caller
      .call(echo, 'x', { timeoutMs: 100 }, () => {
        called = true;
      })
      .cancel();
    clock.advance(200);
    expect(called).toBe(false);
    expect(frames.length).toBe(0);
  });

  test('requests under way hold a bounded number of bytes, which those that end give back', () => {
    const { clock, caller } = setUp({ serverLimits: { heldBytesMax: 1_000_000 } });
    clock.advance(1);
    const big = 'x'.repeat(300_000);
    const ask = (): { outcome: Outcome; cancel: () => void } => {
      const outcome: Outcome = { error: undefined, reply: undefined, calls: 0 };
      const call = caller.call(silent, big, { timeoutMs: 1_000 }, (error) => {
        outcome.error = error?.code;
      });
      clock.advance(1);
      return { outcome, cancel: () => call.cancel() };
    };
    const first = Array.from({ length: 4 }, ask);
    expect(first.map(({ outcome }) => outcome.error)).toEqual([undefined, undefined, undefined, 'RESOURCE_EXHAUSTED']);
    expect(callEcho(caller, 'small').error).toBeUndefined();
    first[0]?.cancel();
    expect([ask(), ask()].map(({ outcome }) => outcome.error)).toEqual([undefined, 'RESOURCE_EXHAUSTED']);
    clock.advance(2_000);
    for (let i = 0; i < 10; i++) {
      const outcome = callEcho(caller, big);
      clock.advance(1);
      expect(outcome.reply).toBe(big);
    }
    expect(ask().outcome.error).toBeUndefined();
  });

  test('calls beyond the limit are refused at the caller', () => {
    const { clock, caller } = setUp({ callsMax: 2 });
    callEcho(caller, 'a', silent);
    callEcho(caller, 'b', silent);
    expect(callEcho(caller, 'c', silent).error).toBe('RESOURCE_EXHAUSTED');
    clock.advance(2_000);
    expect(caller.outstanding).toBe(0);
  });

  test('calls beyond the limit of the server are refused there', () => {
    const { clock, caller, busy } = setUp({ serverLimits: { callsMax: 2 } });
    const outcomes = ['a', 'b', 'c'].map((text) => callEcho(caller, text, silent));
    clock.advance(1);
    expect(outcomes.map((o) => o.error)).toEqual([undefined, undefined, 'RESOURCE_EXHAUSTED']);
    expect(busy).toEqual(['refused']);
  });

  test('bytes that wait for a link that does not open are bounded', () => {
    const { caller } = setUp({ serve: false });
    const large = 'x'.repeat(700_000);
    const outcomes = [1, 2, 3].map(() => callEcho(caller, large));
    expect(outcomes.map((o) => o.error)).toEqual([undefined, undefined, 'RESOURCE_EXHAUSTED']);
  });

  test('a request above the limit is refused alone, before it is sent', () => {
    const { clock, caller } = setUp();
    const small = callEcho(caller, 'small');
    const large = callEcho(caller, 'x'.repeat(800_000));
    let ended: string | undefined;
    caller.openStream(
      echo,
      'x'.repeat(800_000),
      () => {},
      (error) => {
        ended = error?.code;
      },
    );
    clock.advance(1);
    expect([small.reply, large.error, ended]).toEqual(['small', 'REQUEST_TOO_LARGE', 'REQUEST_TOO_LARGE']);
  });

  test('a request is measured in bytes, not in characters', () => {
    const { clock, caller } = setUp();
    const small = callEcho(caller, 'small');
    const large = callEcho(caller, '語'.repeat(300_000));
    clock.advance(1);
    expect([small.reply, large.error]).toEqual(['small', 'REQUEST_TOO_LARGE']);
  });

  test('an answer above the limit becomes RESOURCE_EXHAUSTED', () => {
    const { clock, caller } = setUp({ serverLimits: { replyBytesMax: 100 } });
    const outcome = callEcho(caller, 'x'.repeat(200));
    clock.advance(1);
    expect(outcome.error).toBe('RESOURCE_EXHAUSTED');
  });

  test('an answer above the limit that tells what was changed is lost, and no refusal', () => {
    const { clock, registry, caller } = setUp({ serverLimits: { replyBytesMax: 100 } });
    const change = { ...echo, name: 'test.change', changes: () => true };
    registry.handle(change, (text, _context, done) => done(undefined, text));
    let seen: ServiceError | undefined;
    caller.call(change, 'x'.repeat(200), { timeoutMs: 100 }, (error) => {
      seen = error;
    });
    clock.advance(1);
    expect(seen).toMatchObject({ code: 'RESULT_LOST' });
  });

  test.each([
    { changes: false, code: 'INTERNAL' },
    { changes: true, code: 'RESULT_LOST' },
  ])('an answer that cannot be encoded is answered with $code, and the fault stays visible', ({ changes, code }) => {
    const { clock, registry, caller } = setUp();
    const fault = new InvariantError('no such form');
    const method = { ...echo, name: 'test.faulty', changes: () => changes };
    const encodeReply = (): never => {
      throw fault;
    };
    let answer = (): void => {};
    registry.handle({ ...method, encodeReply }, (text, _context, done) => {
      answer = () => done(undefined, text);
    });
    const outcome = callEcho(caller, 'x', method);
    clock.advance(1);
    expect(answer).toThrow(fault);
    clock.advance(1);
    expect(outcome).toMatchObject({ error: code, calls: 1 });
  });

  test('garbage from the peer ends the link, not the process', () => {
    const clock = new ManualClock();
    const pair = createMemoryLink(clock);
    const caller = new LinkCaller({ link: pair.client, clock });
    const outcome = callEcho(caller, 'x');
    let closed = false;
    pair.server.start({
      onOpen() {},
      onFrame() {},
      onDrain() {},
      onClose: () => {
        closed = true;
      },
    });
    clock.advance(1);
    pair.server.send(Buffer.from([9, 9, 9]));
    clock.advance(1);
    expect([outcome.error, closed]).toEqual(['UNKNOWN_OUTCOME', true]);
  });

  const badFrames: { name: string; frame: Bytes }[] = [
    { name: 'another version', frame: Buffer.from([2, 0x90]) },
    { name: 'no array', frame: Buffer.from([1, 0x05]) },
    { name: 'cut short', frame: Buffer.from([1, 0x92, 0x93]) },
    { name: 'an unknown kind', frame: encodeFrame([[77, 1, 1]]) },
    { name: 'a method number that was never bound', frame: encodeFrame([[1, 1, 5, 'x']]) },
    { name: 'an id that is no number', frame: encodeFrame([[1, 'x', 5, 'x']]) },
    {
      name: 'an id used twice',
      frame: encodeFrame([
        [0, 1, silent.name],
        [1, 1, 1, 'x'],
        [1, 1, 1, 'x'],
      ]),
    },
  ];
  test.each(badFrames)('the server ends a link that sends $name', ({ frame }) => {
    const { clock, pair } = setUp();
    let ended: string | undefined;
    pair.client.start({
      onOpen() {},
      onFrame() {},
      onDrain() {},
      onClose: (error) => {
        ended = error.code;
      },
    });
    pair.client.send(frame);
    clock.advance(1);
    expect(ended).toBe('INVALID_ARGUMENT');
  });
});

describe('streams over a link', () => {
  function served(clock: ManualClock) {
    const registry = createRpcRegistry();
    const closed: number[] = [];
    const contexts: StreamContext<number>[] = [];
    registry.handleStream(countTo, (first, context) => {
      let limit = first;
      contexts.push(context);
      let next = 0;
      const pump = (): void => {
        while (next < limit) if (!context.send(next++)) return;
        if (next >= limit) context.end();
      };
      context.onDrain(pump);
      pump();
      return {
        onMessage: (more) => {
          limit += more;
          pump();
        },
        onClose: () => closed.push(next),
      };
    });
    const pair = createMemoryLink(clock);
    const caller = new LinkCaller({ link: pair.client, clock });
    serveLink({ link: pair.server, registry, clock, caller: { kind: 'node', nodeId: 1 } });
    return { caller, pair, closed, contexts };
  }

  test('delivers every message once and in order under back-pressure', () => {
    const clock = new ManualClock();
    const { caller } = served(clock);
    const got: number[] = [];
    let ended: unknown = 'open';
    caller.openStream(
      countTo,
      5_000,
      (n) => got.push(n),
      (error) => {
        ended = error;
      },
    );
    clock.advance(10);
    expect(got.length).toBe(5_000);
    expect(got.every((n, i) => n === i)).toBe(true);
    expect(ended).toBeUndefined();
  });

  test('stops at the window while the peer consumes nothing, and goes on afterwards', () => {
    const clock = new ManualClock();
    const { caller, pair, closed } = served(clock);
    const got: number[] = [];
    const handle = caller.openStream(
      countTo,
      100_000,
      (n) => {
        if (got.push(n) === 100) pair.stall(true);
      },
      () => {},
    );
    clock.advance(1);
    const before = got.length;
    clock.advance(1_000);
    expect(got.length).toBe(before);
    handle.cancel();
    pair.stall(false);
    clock.advance(1);
    expect(closed.length).toBe(1);
    expect((closed[0] ?? 0) - before).toBeLessThanOrEqual(600);
  });

  test('a handler that ignores back-pressure loses its stream with RESOURCE_EXHAUSTED', () => {
    const clock = new ManualClock();
    const registry = createRpcRegistry();
    let heard = 0;
    registry.handleStream(countTo, (limit, context) => {
      for (let i = 0; i < limit; i++) context.send(i);
      return {
        onMessage() {},
        onClose: () => {
          heard++;
        },
      };
    });
    const pair = createMemoryLink(clock);
    const caller = new LinkCaller({ link: pair.client, clock });
    serveLink({ link: pair.server, registry, clock, caller: { kind: 'node', nodeId: 1 } });
    let code: string | undefined;
    caller.openStream(
      countTo,
      10_000,
      () => {},
      (error) => {
        code = error?.code;
      },
    );
    clock.advance(1);
    // It was still beginning when it lost it.
    expect([code, heard]).toEqual(['RESOURCE_EXHAUSTED', 1]);
  });

  test('goes on after much has waited, also over a link that takes all of it at once', () => {
    const clock = new ManualClock();
    const registry = createRpcRegistry();
    registry.handleStream(countTo, (limit, context) => {
      let next = 0;
      const pump = (): void => {
        while (next < limit) if (!context.send(next++)) return;
      };
      context.onDrain(pump);
      pump();
      return { onMessage() {}, onClose() {} };
    });
    const pair = createMemoryLink(clock);
    const link: FrameLink = {
      start: (receiver) => pair.server.start(receiver),
      send(frame) {
        pair.server.send(frame);
        return true;
      },
      close: (reason) => pair.server.close(reason),
    };
    serveLink({
      link,
      registry,
      clock,
      caller: { kind: 'node', nodeId: 1 },
      limits: { ...DEFAULT_SERVER_LIMITS, queueBytesMax: 50 },
    });
    const caller = new LinkCaller({ link: pair.client, clock });
    const got: number[] = [];
    caller.openStream(
      countTo,
      100,
      (n) => got.push(n),
      () => {},
    );
    clock.advance(1);
    expect(got).toEqual(Array.from({ length: 100 }, (_, i) => i));
  });

  test('a broken link ends both sides', () => {
    const clock = new ManualClock();
    const { caller, pair, closed } = served(clock);
    let code: string | undefined;
    caller.openStream(
      countTo,
      1_000_000,
      (n) => {
        if (n === 100) pair.sever();
      },
      (error) => {
        code = error?.code;
      },
    );
    clock.advance(1);
    expect([code, closed.length]).toEqual(['UNAVAILABLE', 1]);
  });
});

describe('the local channel', () => {
  function local() {
    const clock = new ManualClock();
    const registry = createRpcRegistry();
    const canceled: string[] = [];
    registry.handle(echo, (text, _context, done) => done(undefined, text));
    registry.handle(silent, (text, context) => context.onCancel(() => canceled.push(text)));
    return { clock, canceled, channel: createLocalChannel({ registry, clock }) };
  }

  test('answers on the spot', () => {
    expect(callEcho(local().channel, 'x')).toEqual({ error: undefined, reply: 'x', calls: 1 });
  });

  test('times out with UNKNOWN_OUTCOME, tells the handler, and leaves no timer', () => {
    const { clock, channel, canceled } = local();
    const outcome = callEcho(channel, 'q', silent, 300);
    clock.advance(400);
    expect(outcome).toEqual({ error: 'UNKNOWN_OUTCOME', reply: undefined, calls: 1 });
    expect(canceled).toEqual(['q']);
    expect(clock.pendingTimers).toBe(0);
  });

  test('a handler that asks to hear of the end when that has come hears of it at once', () => {
    const clock = new ManualClock();
    const registry = createRpcRegistry();
    let waited = (): void => {};
    let heard = 0;
    registry.handle(silent, (_text, context) => {
      waited = () => context.onCancel(() => heard++);
    });
    createLocalChannel({ registry, clock })
      .call(silent, 'q', { timeoutMs: 100 }, () => {})
      .cancel();
    waited();
    expect(heard).toBe(1);
  });

  test('a cancelled call is never answered', () => {
    const { clock, channel, canceled } = local();
    let called = false;
    channel
      .call(silent, 'q', { timeoutMs: 100 }, () => {
        called = true;
      })
      .cancel();
    clock.advance(500);
    expect([called, canceled]).toEqual([false, ['q']]);
  });
});
