import { ServiceError, type Span } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { Command, CommandResult } from '@remora/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { memoryEngine } from '../../../test/support/state-bed.ts';
import { Leases } from '../../state/leases/leases.ts';
import { LeaseEndings } from './lease-endings.ts';

const SPAN: Span = { start: Buffer.from([1, 0x6b]), end: Buffer.from([1, 0x6c]) };
const LEASE = { id: 7n, ttlMs: 1_000, incarnation: 5, attributes: {}, spans: [SPAN], change: 0 };

/** The home of a lease that another range has something of. */
class EndingsBed {
  readonly clock = new ManualClock();
  readonly leases = new Leases(memoryEngine());
  isHome = true;
  readonly told: string[] = [];
  /** What other ranges were told, and how they answer. */
  readonly asked: {
    readonly command: Command;
    readonly answer: (result: CommandResult) => void;
    readonly fail: () => void;
  }[] = [];
  readonly endings = new LeaseEndings({
    clock: this.clock,
    leases: this.leases,
    isHome: () => this.isHome,
    others: {
      command: (command, _options, done) => {
        const fail = (): void => done(new ServiceError('UNKNOWN_OUTCOME', 'nobody answers'), undefined);
        this.asked.push({ command, answer: (result) => done(undefined, { result }), fail });
        return () => {};
      },
      query: () => () => {},
    },
    propose: ({ id, span }, done) => {
      this.leases.settle(id, span);
      done(true);
    },
  });

  constructor() {
    this.leases.grant(LEASE);
    this.leases.beginEnd(LEASE.id);
    this.endings.start();
  }

  wait(): void {
    this.endings.whenGone(LEASE.id, (error?: ServiceError) => this.told.push(error?.code ?? 'gone'));
  }
}

describe('who has ended a lease', () => {
  let bed: EndingsBed;
  beforeEach(() => {
    bed = new EndingsBed();
  });

  test('is told when every range has let go of it (LE2)', () => {
    bed.wait();
    expect(bed.asked.map(({ command }) => command)).toEqual([{ type: 'leaseEnd', id: 7n, incarnation: 5, span: SPAN }]);
    expect(bed.told).toEqual([]);
    bed.asked[0]?.answer({ type: 'leaseEnd', more: false, covered: SPAN });
    expect(bed.told).toEqual(['gone']);
  });

  // Found by the simulation of whole clusters (60392): STALE_EPOCH let the gateway say that nothing had been applied.
  test('is never told that it did not end, though its record goes to another range (LE4)', () => {
    bed.wait();
    bed.isHome = false;
    bed.leases.settle(LEASE.id, SPAN); // as far as this replica can see
    bed.endings.look();
    bed.wait();
    expect(bed.told).toEqual(['UNKNOWN_OUTCOME', 'UNKNOWN_OUTCOME']);
  });

  test('is told that it is not known when leadership is lost', () => {
    bed.wait();
    bed.endings.stop();
    bed.wait();
    expect(bed.told).toEqual(['UNKNOWN_OUTCOME', 'UNKNOWN_OUTCOME']);
    expect(bed.endings.waits).toBe(0);
  });

  test('is told although more spans than are told at a time are of a range that does not answer (LE3)', () => {
    bed.endings.stop();
    bed.asked.length = 0;
    for (let i = 0; i < 2_500; i++) {
      const id = 1_000n + BigInt(i);
      bed.leases.grant({ ...LEASE, id, spans: [SPAN] });
      bed.leases.beginEnd(id);
    }
    const healthy = { start: Buffer.from([1, 0x78]), end: Buffer.from([1, 0x79]) };
    bed.leases.grant({ ...LEASE, id: 9_999n, spans: [healthy] });
    bed.leases.beginEnd(9_999n);
    bed.endings.start();
    bed.endings.whenGone(9_999n, (error?: ServiceError) => bed.told.push(error?.code ?? 'gone'));
    for (let round = 0; round < 4; round++) {
      for (const { command, answer, fail } of bed.asked.splice(0)) {
        if (command.type === 'leaseEnd' && command.id === 9_999n) {
          answer({ type: 'leaseEnd', more: false, covered: healthy });
        } else fail();
      }
      bed.clock.advance(100);
    }
    expect(bed.told).toEqual(['gone']);
    const told = new Set(bed.asked.map(({ command }) => (command.type === 'leaseEnd' ? command.id : 0n)));
    expect(told.size).toBeGreaterThan(1_000); // The others are told again all the same.
  });
});
