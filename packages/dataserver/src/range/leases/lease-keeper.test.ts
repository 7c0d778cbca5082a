import type { ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { TTL_NEVER_MS } from '@remora/lock';
import type { Command } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { memoryEngine } from '../../../test/support/state-bed.ts';
import { Leases } from '../../state/leases/leases.ts';
import { LeaseKeeper } from './lease-keeper.ts';

type Proposed = Extract<Command, { type: 'leaseExpire' | 'leaseCheckpoint' }>;

const MINUTE_MS = 60_000;

/** A keeper whose proposals wait until the test decides them. */
class KeeperBed {
  readonly clock = new ManualClock({ monotonicMs: 50_000 });
  readonly leases = new Leases(memoryEngine());
  readonly proposed: { readonly command: Proposed; readonly done: (applied: boolean) => void }[] = [];
  readonly keeper: LeaseKeeper;

  constructor(checkpointMs?: number) {
    this.keeper = new LeaseKeeper({
      ...{ clock: this.clock, leases: this.leases, checkpointMs },
      propose: (command, done) => this.proposed.push({ command, done }),
    });
  }

  grant(id: bigint, ttlMs: number, incarnation = 5): void {
    const lease = { id, ttlMs, incarnation, attributes: {}, spans: [], change: 0 };
    this.leases.grant(lease);
    this.keeper.granted(lease);
  }

  renewal(id: bigint, incarnation = 0): string {
    let answer = 'none yet';
    const receivedMs = this.clock.monotonicMs();
    try {
      this.keeper.renew({ id, incarnation, receivedMs }, (error, lease) => {
        answer = error?.code ?? String(lease?.ttlMs);
      });
    } catch (error) {
      return (error as ServiceError).code;
    }
    return answer;
  }

  /** Applies what was proposed, in order; gives what it was. */
  apply(): readonly Proposed[] {
    const proposed = this.proposed.splice(0);
    for (const { command, done } of proposed) {
      if (command.type === 'leaseExpire') this.leases.beginEnd(command.id);
      else this.leases.checkpoint(command.id, command.remainingMs);
      done(true);
    }
    return proposed.map(({ command }) => command);
  }

  lead(term: number): void {
    this.keeper.stop();
    this.keeper.start(term);
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

  test('acknowledges nothing of a lease whose expiry waits yet, also behind a seal of the range in the same term (LK3)', () => {
    const bed = new KeeperBed();
    bed.keeper.start(3);
    bed.grant(1n, 1_000);
    bed.clock.advance(1_200);
    const [expiry] = bed.proposed;
    bed.lead(3);
    expect(bed.renewal(1n)).toBe('UNAVAILABLE');
    bed.clock.advance(2_000);
    bed.lead(3);
    expect([bed.renewal(1n), bed.proposed.length]).toEqual(['UNAVAILABLE', 1]);
    expiry?.done(false);
    expect(bed.renewal(1n)).toBe('1000');
  });

  test('takes back a checkpoint that waits yet behind a seal of the range in the same term (LK6)', () => {
    const bed = new KeeperBed();
    bed.keeper.start(3);
    bed.grant(1n, 10 * MINUTE_MS);
    bed.clock.advance(5 * MINUTE_MS + 100);
    bed.lead(3);
    expect(bed.renewal(1n)).toBe('none yet');
    expect(bed.apply()).toMatchObject([{ remainingMs: 5 * MINUTE_MS }, { remainingMs: undefined }]);
    expect(bed.renewal(1n)).toBe(String(10 * MINUTE_MS));
  });

  test('does not hold a lease up for what an earlier term proposed, which is not applied any more', () => {
    const bed = new KeeperBed();
    bed.keeper.start(3);
    bed.grant(1n, 1_000);
    bed.clock.advance(1_200);
    bed.lead(4);
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

  test('holds no expiry up by others that are not decided for long, and acknowledges nothing of those (LK7)', () => {
    const bed = new KeeperBed();
    bed.keeper.start(3);
    for (let id = 1n; id <= 1_000n; id++) bed.grant(id, 100);
    bed.clock.advance(1_000);
    const stuck = bed.proposed.splice(0);
    expect(stuck.length).toBe(1_000);
    for (let id = 2_001n; id <= 3_500n; id++) bed.grant(id, 100);
    bed.clock.advance(5_000);
    expect(bed.proposed).toEqual([]);
    bed.clock.advance(5_000);
    expect(bed.proposed.length).toBe(1_000);
    expect(bed.proposed.every(({ command }) => command.id > 2_000n)).toBe(true);
    expect(bed.renewal(1n)).toBe('UNAVAILABLE');
    for (const { done } of stuck) done(false); // counted no more: those under way are as many as there may be
    bed.clock.advance(200);
    expect(bed.proposed.length).toBe(1_000);
    bed.apply();
    bed.clock.advance(200);
    expect(bed.proposed.length).toBe(1_000);
  });

  test('logs what is left of a long lease whose client is silent, and nothing of others (LK6)', () => {
    const bed = new KeeperBed();
    bed.keeper.start(3);
    bed.grant(1n, 5 * MINUTE_MS);
    bed.grant(2n, 60 * MINUTE_MS);
    bed.grant(3n, TTL_NEVER_MS);
    bed.clock.advance(4 * MINUTE_MS);
    for (const id of [1n, 2n]) bed.renewal(id);
    bed.clock.advance(5 * MINUTE_MS - 1_000);
    expect(bed.proposed).toEqual([]);
    bed.clock.advance(1_100);
    const about = { id: 2n, incarnation: 5, term: 3 };
    const ended = { type: 'leaseExpire', id: 1n, incarnation: 5, term: 3 };
    expect(bed.apply()).toEqual([ended, { type: 'leaseCheckpoint', ...about, remainingMs: 55 * MINUTE_MS }]);
    bed.clock.advance(5 * MINUTE_MS + 100);
    expect(bed.apply()).toMatchObject([{ id: 2n, remainingMs: expect.closeTo(50 * MINUTE_MS, -3) }]);
  });

  test('ends a long lease that nobody renews in its time, however often the leader changes (LK6, traps 17)', () => {
    const bed = new KeeperBed();
    bed.keeper.start(3);
    bed.grant(1n, 30 * MINUTE_MS);
    let term = 3;
    for (let passedMs = 0; bed.leases.get(1n) !== undefined; passedMs += 7 * MINUTE_MS) {
      expect(passedMs).toBeLessThan(50 * MINUTE_MS);
      bed.lead(++term);
      for (let i = 0; i < 7; i++) {
        bed.clock.advance(MINUTE_MS);
        bed.apply();
      }
    }
    // Of each leader's seven minutes at least five are counted.
    expect(term).toBeGreaterThan(3 + 4);
  });

  test('acknowledges a keep-alive after a checkpoint only when that is taken back (LK6)', () => {
    const bed = new KeeperBed();
    bed.keeper.start(3);
    bed.grant(1n, 10 * MINUTE_MS);
    bed.clock.advance(5 * MINUTE_MS + 100);
    // One that is on its way to the log counts as well.
    expect(bed.renewal(1n)).toBe('none yet');
    const taken = { type: 'leaseCheckpoint', id: 1n, incarnation: 5, term: 3, remainingMs: undefined };
    expect(bed.apply()).toMatchObject([{ remainingMs: 5 * MINUTE_MS }, taken]);
    expect(bed.renewal(1n)).toBe(String(10 * MINUTE_MS));
    bed.lead(4);
    bed.clock.advance(10 * MINUTE_MS - 1_000);
    expect(bed.proposed.map(({ command }) => command.type)).toEqual(['leaseCheckpoint']);
  });

  test('answers with what became of it when a checkpoint could not be taken back', () => {
    const bed = new KeeperBed();
    bed.keeper.start(3);
    bed.grant(1n, 10 * MINUTE_MS);
    bed.leases.checkpoint(1n, 1_000);
    const told: (string | undefined)[] = [];
    bed.keeper.renew({ id: 1n, incarnation: 5, receivedMs: 0 }, (error) => told.push(error?.code));
    bed.proposed[0]?.done(false);
    expect(told).toEqual(['UNAVAILABLE']);
  });

  test('proposes a bounded number of checkpoints at a time, and the others as those are decided', () => {
    const bed = new KeeperBed(1_000);
    bed.keeper.start(3);
    for (let id = 1n; id <= 1_500n; id++) bed.grant(id, MINUTE_MS);
    bed.clock.advance(1_100);
    expect(bed.apply().length).toBe(1_000);
    bed.clock.advance(100);
    expect(bed.apply().length).toBe(500);
  });

  test('tries a checkpoint that could not be logged again soon, and later each time, until its client is heard of', () => {
    const bed = new KeeperBed();
    bed.keeper.start(3);
    bed.grant(1n, 60 * MINUTE_MS);
    const refuse = (): readonly string[] =>
      bed.proposed.splice(0).map(({ command, done }) => {
        done(false);
        return command.type;
      });
    bed.clock.advance(5 * MINUTE_MS + 100);
    expect(refuse()).toEqual(['leaseCheckpoint']);
    for (const waitMs of [1_000, 2_000, 4_000]) {
      bed.clock.advance(waitMs - 200);
      expect(refuse()).toEqual([]);
      bed.clock.advance(300);
      expect(refuse()).toEqual(['leaseCheckpoint']);
    }
    expect(bed.renewal(1n)).toBe(String(60 * MINUTE_MS));
    bed.clock.advance(5 * MINUTE_MS - 1_000);
    expect(refuse()).toEqual([]);
    bed.clock.advance(1_100);
    expect(refuse()).toEqual(['leaseCheckpoint']);
    bed.clock.advance(1_100);
    expect(refuse()).toEqual(['leaseCheckpoint']);
  });

  test('sets no timer while there is no lease', () => {
    const bed = new KeeperBed();
    bed.keeper.start(3);
    expect(bed.clock.pendingTimers).toBe(0);
  });
});
