import { ManualClock, ServiceError, type Span } from '@remora/base';
import { expect, test } from 'vitest';
import { Leases } from '../state/leases.ts';
import type { RangeState } from '../state/range-state.ts';
import { memoryEngine } from '../state/test-bed.ts';
import { LeaseDuties } from './lease-duties.ts';

const SPAN: Span = { start: Buffer.from([1, 0x6b]), end: Buffer.from([1, 0x6c]) };
const ALL: Span = { start: Buffer.alloc(0), end: Buffer.alloc(0) };

test('who ends a lease again is told that there is none only when every range has let go of it', () => {
  const clock = new ManualClock();
  const leases = new Leases(memoryEngine());
  leases.grant({ id: 7n, ttlMs: 1_000, incarnation: 5, attributes: {}, spans: [SPAN], change: 0 });
  leases.beginEnd(7n);
  let settled: (() => void) | undefined;
  const duties = new LeaseDuties({
    clock,
    engine: memoryEngine(),
    state: { leases, bounds: { routed: ALL }, delays: { all: () => [] } } as unknown as RangeState,
    others: {
      command: (_command, _options, done) => {
        settled = () => done(undefined, { result: { type: 'leaseEnd', more: false, covered: SPAN } });
        return () => {};
      },
      query: () => () => {},
    },
    commands: {
      propose: (_command: unknown, done: (outcome: unknown) => void) => {
        leases.settle(7n, SPAN);
        done({ ok: true });
      },
      proposeAlone: () => {},
    } as never,
    term: () => 1,
    rangeTimeMs: () => 0,
  });
  duties.start(1);
  const told: (string | undefined)[] = [];
  const answer = duties.accompany({ type: 'leaseRevoke', id: 7n, incarnation: 5 }, (error) => told.push(error?.code));
  answer(new ServiceError('LEASE_NOT_FOUND', 'there is no such lease'), undefined);
  expect(told).toEqual([]);
  settled?.();
  clock.advance(1_000);
  expect(told).toEqual(['LEASE_NOT_FOUND']);
  duties.stop(new ServiceError('NOT_LEADER', 'stopped'));
});
