import { ManualClock, type ServiceError } from '@remora/base';
import type { Command } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { Leases } from '../state/leases.ts';
import { memoryEngine } from '../state/test-bed.ts';
import { LeaseKeeper } from './lease-keeper.ts';

type Expire = Extract<Command, { type: 'leaseExpire' }>;

/** A keeper whose proposals wait until the test decides them. */
class KeeperBed {
  readonly clock = new ManualClock({ monotonicMs: 50_000 });
  readonly leases = new Leases(memoryEngine());
  readonly proposed: { readonly command: Expire; readonly done: (ended: boolean) => void }[] = [];
  readonly keeper = new LeaseKeeper(this.clock, this.leases, (command, done) => this.proposed.push({ command, done }));

  grant(id: bigint, ttlMs: number, incarnation = 5): void {
    const lease = { id, ttlMs, incarnation, attributes: {}, spans: [], change: 0 };
    this.leases.grant(lease);
    this.keeper.granted(lease);
  }

  renewal(id: bigint, incarnation = 0): string {
    try {
      return String(this.keeper.renew(id, incarnation, this.clock.monotonicMs()).ttlMs);
    } catch (error) {
      return (error as ServiceError).code;
    }
  }
}

describe('a lease keeper', () => {
  test('proposes the expiry of a lease that nobody renews, also of one with a TTL below a second and a negative id', () => {
    const bed = new KeeperBed();
    bed.keeper.start(3);
    bed.grant(-7n, 250);
    bed.clock.advance(249);
    expect(bed.proposed).toEqual([]);
    bed.clock.advance(101);
    expect(bed.proposed.map(({ command }) => command)).toEqual([
      { type: 'leaseExpire', id: -7n, incarnation: 5, term: 3 },
    ]);
  });

  test('acknowledges nothing between the proposal of an expiry and its outcome (LK3)', () => {
    const bed = new KeeperBed();
    bed.keeper.start(3);
    bed.grant(1n, 1_000);
    bed.clock.advance(1_200);
    expect(bed.renewal(1n)).toBe('UNAVAILABLE');
    bed.proposed[0]?.done(false);
    expect(bed.renewal(1n)).toBe('1000');
  });

  test('gives a changed TTL with the next heartbeat, and not before (LK5)', () => {
    const bed = new KeeperBed();
    bed.keeper.start(3);
    bed.grant(1n, 10_000);
    bed.leases.change(1n, { ttlMs: 1_000, change: 1 });
    bed.clock.advance(5_000);
    expect([bed.proposed, bed.keeper.remainingMs(1n)]).toEqual([[], 5_000]);
    expect([bed.renewal(1n), bed.keeper.remainingMs(1n)]).toEqual(['1000', 1_000]);
    bed.leases.change(1n, { ttlMs: 20_000, change: 2 });
    expect(bed.keeper.remainingMs(1n)).toBe(1_000);
    expect(bed.renewal(1n)).toBe('20000');
    bed.clock.advance(19_900);
    expect([bed.proposed, bed.keeper.remainingMs(1n)]).toEqual([[], 100]);
  });

  test('gives every lease its full time again with each leadership (LK1, traps 17)', () => {
    const bed = new KeeperBed();
    bed.keeper.start(3);
    bed.grant(1n, 1_000);
    for (let term = 4; term < 7; term++) {
      bed.clock.advance(900);
      bed.keeper.stop();
      bed.keeper.start(term);
    }
    bed.clock.advance(900);
    expect(bed.proposed).toEqual([]);
    bed.clock.advance(200);
    expect(bed.proposed[0]?.command.term).toBe(6);
  });

  test('says that a lease is gone only when it is, not when leadership was lost meanwhile (LK4)', () => {
    const bed = new KeeperBed();
    bed.keeper.start(3);
    bed.grant(1n, 1_000);
    bed.keeper.stop();
    expect(bed.renewal(1n)).toBe('NOT_LEADER');
    bed.leases.beginEnd(1n);
    bed.leases.settle(1n, undefined);
    expect(bed.renewal(1n)).toBe('LEASE_NOT_FOUND');
    bed.grant(1n, 1_000, 9);
    expect(bed.renewal(1n, 5)).toBe('LEASE_NOT_FOUND');
  });

  test('proposes a bounded number of expiries at a time, and the others as those are decided', () => {
    const bed = new KeeperBed();
    bed.keeper.start(3);
    for (let id = 1n; id <= 2_500n; id++) bed.grant(id, 100);
    bed.clock.advance(1_000);
    expect(bed.proposed.length).toBe(1_000);
    for (const { command, done } of bed.proposed.splice(0)) {
      bed.leases.beginEnd(command.id);
      bed.keeper.ended(command.id);
      done(true);
    }
    bed.clock.advance(100);
    expect(bed.proposed.length).toBe(1_000);
  });

  test('sets no timer while there is no lease', () => {
    const bed = new KeeperBed();
    bed.keeper.start(3);
    expect(bed.clock.pendingTimers).toBe(0);
  });
});
