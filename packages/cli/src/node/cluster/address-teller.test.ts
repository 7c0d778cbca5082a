import { ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { ClusterView, RpcChannel } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { AddressTeller } from './address-teller.ts';

type Answer = ServiceError | undefined;

function setUp(answer: (nodeId: number, tries: number) => Answer) {
  const clock = new ManualClock();
  const calls: number[] = [];
  const channel = (nodeId: number) =>
    ({
      call(_method: unknown, _request: unknown, _options: unknown, done: (error: Answer) => void) {
        calls.push(nodeId);
        done(answer(nodeId, calls.filter((id) => id === nodeId).length));
        return { cancel() {} };
      },
    }) as unknown as RpcChannel;
  const teller = new AddressTeller({ nodeId: 1, clock, dialer: { channel, channelTo: () => channel(0) } });
  const entry = (nodeId: number, state: string) => ({ descriptor: { nodeId }, state });
  const nodes = [entry(1, 'up'), entry(2, 'up'), entry(3, 'removed'), entry(4, 'suspect')];
  teller.tell({ nodes } as unknown as ClusterView);
  return { clock, calls, teller };
}

const AWAY = new ServiceError('UNAVAILABLE', 'away');
const ANSWERS = new ServiceError('NOT_LEADER', 'not me');

describe('a node that has moved', () => {
  test('calls every other node once that answers, whatever it answers, and none that was removed', () => {
    const { clock, calls } = setUp((nodeId) => (nodeId === 2 ? ANSWERS : undefined));
    clock.advance(120_000);
    expect(calls).toEqual([2, 4]);
  });

  test('calls one again that it does not reach, for a minute (AT1)', () => {
    const { clock, calls } = setUp((nodeId, tries) =>
      nodeId === 2 && tries < 4 ? AWAY : nodeId === 4 ? AWAY : undefined,
    );
    clock.advance(3_000);
    expect(calls.filter((id) => id === 2)).toHaveLength(4);
    clock.advance(600_000);
    expect(calls.filter((id) => id === 4)).toHaveLength(60);
    expect(clock.pendingTimers).toBe(0);
  });

  test('calls nobody any more once it stops', () => {
    const { clock, calls, teller } = setUp(() => AWAY);
    teller.stop();
    clock.advance(10_000);
    expect(calls).toEqual([2, 4]);
  });
});
