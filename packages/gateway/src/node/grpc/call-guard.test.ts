import { ServiceError, silentLogger } from '@remora/base';
import type { StreamCall } from '@remora/grpc-server';
import { expect, test } from 'vitest';
import { NO_AUTHENTICATION } from '../../../test/support/no-authentication.ts';
import type { StreamHandler, StreamService } from '../../calls.ts';
import { TIMEOUT_LIMITS } from '../../calls.ts';
import { etcdStatus } from '../../etcd/errors.ts';
import { CallGuard } from './call-guard.ts';

const REFUSED = new ServiceError('UNAVAILABLE', 'not now');

/** The part of a call that the guard uses. */
class FakeCall {
  readonly connection = { state: undefined };
  readonly ends: number[] = [];
  onRequest: ((request: string) => void) | undefined;
  onHalfClose: (() => void) | undefined;
  onCancelled: (() => void) | undefined;
  onDrain: (() => void) | undefined;
  fail(status: number): void {
    this.ends.push(status);
  }
  end(): void {
    this.ends.push(0);
  }
  pause(): void {}
  resume(): void {}
}

function serve(service: StreamService<string, string>) {
  const guard = new CallGuard(
    { unaryCallsMax: 9, streamsMax: 9, timeouts: TIMEOUT_LIMITS },
    silentLogger,
    NO_AUTHENTICATION,
  );
  const openSilent = (kind: 'stream' | 'serverStream' = 'stream'): FakeCall => {
    const call = new FakeCall();
    guard[kind](service, etcdStatus)(call as unknown as StreamCall<string, string>);
    return call;
  };
  const open = (kind: 'stream' | 'serverStream' = 'stream'): FakeCall => {
    const call = openSilent(kind);
    call.onRequest?.('x');
    return call;
  };
  return { guard, open, openSilent };
}

function handler(parts: Partial<StreamHandler<string>> = {}): StreamHandler<string> {
  return { onRequest: () => true, onDrain() {}, onHalfClose() {}, onClose() {}, ...parts };
}

test('a service that cannot be made is answered, and its stream is counted no more (C3)', () => {
  const { guard, open } = serve(() => {
    throw REFUSED;
  });
  for (const kind of ['stream', 'serverStream'] as const) expect(open(kind).ends).toEqual([14]);
  expect(guard.load.streams).toBe(0);
  expect(() => guard.drain()).not.toThrow();
});

test('a service that ends its stream while it is made is closed once (C3)', () => {
  let closed = 0;
  for (const error of [undefined, REFUSED]) {
    const { guard, open } = serve((sink) => {
      sink.end(error);
      return handler({ onClose: () => void closed++ });
    });
    expect(open().ends).toEqual([error === undefined ? 0 : 14]);
    expect(guard.load.streams).toBe(0);
  }
  expect(closed).toBe(2);
});

test('a handler that throws when it is closed keeps no other stream from its end', () => {
  const { guard, open } = serve(() =>
    handler({
      onClose() {
        throw new Error('a fault');
      },
    }),
  );
  const calls = [open(), open('serverStream'), open()];
  calls[0]?.onCancelled?.();
  expect(guard.load.streams).toBe(2);
  guard.drain();
  expect(calls.map(({ ends }) => ends)).toEqual([[], [14], [14]]);
  expect(guard.load.streams).toBe(0);
});

test('streams without a request take no place from others, and end with a drain (C5)', () => {
  let made = 0;
  const { guard, open, openSilent } = serve(() => {
    made++;
    return handler();
  });
  const silent = Array.from({ length: 100 }, () => openSilent());
  const served = Array.from({ length: 9 }, () => open());
  expect([made, guard.load.streams, served.flatMap(({ ends }) => ends)]).toEqual([9, 9, []]);
  silent[0]?.onRequest?.('x');
  silent[1]?.onCancelled?.();
  expect([made, silent[0]?.ends]).toEqual([9, [8]]);
  served[0]?.onCancelled?.();
  silent[2]?.onRequest?.('x');
  silent[2]?.onRequest?.('y');
  expect([made, guard.load.streams]).toEqual([10, 9]);
  guard.drain();
  expect(silent.map(({ ends }) => ends)).toEqual([[8], [], ...new Array(98).fill([14])]);
});

test('a stream that ends before its first request is served, and its handler hears of the end (C5)', () => {
  const heard: string[] = [];
  const { openSilent } = serve((sink) =>
    handler({
      onHalfClose() {
        heard.push('half-close');
        sink.end();
      },
    }),
  );
  const call = openSilent();
  call.onHalfClose?.();
  expect([heard, call.ends]).toEqual([['half-close'], [0]]);
});
