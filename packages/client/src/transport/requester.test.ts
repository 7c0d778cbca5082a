import { SeededRandom, ServiceError, silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { FrameLink } from '@remora/protocol';
import { expect, test } from 'vitest';
import type { ClientPorts } from '../ports.ts';
import { Requester } from './requester.ts';
import { retryPolicy } from './retry.ts';

/** A client whose gateway refuses connections, some milliseconds after each is begun. */
function clientOfNobody(clock: ManualClock, attempts: number | undefined): Requester {
  const connectLink = (): FrameLink => ({
    start: ({ onClose }) => void clock.setTimer(5, () => onClose(new ServiceError('UNAVAILABLE', 'refused'))),
    send: () => true,
    close() {},
  });
  const liveness = { hold() {}, release() {} };
  const ports = { clock, random: new SeededRandom(1), logger: silentLogger, connectLink, liveness };
  const retry = retryPolicy(attempts === undefined ? {} : { attempts });
  return new Requester(ports as unknown as ClientPorts, { endpoints: ['a:1'], requestBytesMax: 1_000, retry });
}

test.each([
  { attempts: 1, soonMs: 10, code: 'UNAVAILABLE' },
  { attempts: 2, soonMs: 500, code: 'UNAVAILABLE' },
  { attempts: undefined, soonMs: 2_500, code: 'DEADLINE_EXCEEDED' },
])(
  'a first command that may be sent $attempts times ends when no gateway is there, and asks no more for the time',
  ({ attempts, soonMs, code }) => {
    const clock = new ManualClock();
    const requester = clientOfNobody(clock, attempts);
    const ends: string[] = [];
    const send = (): void => {
      requester.sendCommand({ type: 'noop' }, { timeoutMs: 2_000 }, (error) => ends.push(error?.code ?? 'ok'));
    };
    send();
    clock.advance(soonMs);
    expect(ends).toEqual([code]);
    // While the gateway is left alone for a moment, as it has just refused.
    send();
    clock.advance(soonMs);
    expect(ends).toEqual([code, expect.any(String)]);
    clock.advance(5_000);
    expect(clock.pendingTimers).toBe(0);
  },
);

test('what takes something back is sent until its time is over, also where the time was not known before', () => {
  const clock = new ManualClock();
  const requester = clientOfNobody(clock, 1);
  const ends: string[] = [];
  const options = { timeoutMs: 2_000, untilAnswered: true };
  requester.sendCommand({ type: 'noop' }, options, (error) => ends.push(error?.code ?? 'ok'));
  clock.advance(1_000);
  expect(ends).toEqual([]);
  clock.advance(1_500);
  expect(ends).toEqual([expect.any(String)]);
});

test('for a command that nobody waits for any more, the time is not asked again', () => {
  const clock = new ManualClock();
  const requester = clientOfNobody(clock, undefined);
  requester.sendCommand({ type: 'noop' }, { timeoutMs: 60_000 }, () => {}).cancel();
  clock.advance(5_000);
  expect(clock.pendingTimers).toBe(0);
});
