import { ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { TTL_NEVER_MS } from '@remora/lock';
import type { Command, LeaseInfo, QueryResult, SessionInfo } from '@remora/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { memoryEngine } from '../../../test/support/state-bed.ts';
import { Leases } from '../../state/leases/leases.ts';
import { EmptyLeases } from './empty-leases.ts';

const ROUND_MS = 10_000;
/** More than the pauses of one look, less than a round. */
const SOON_MS = 200;
const LEASE = { id: 7n, incarnation: 5 };
const TERMS = { attributes: {}, spans: [], ttlMs: TTL_NEVER_MS, change: 1 };
const INFO: LeaseInfo = {
  ...{ ...LEASE, grantedTtlMs: TTL_NEVER_MS, remainingMs: TTL_NEVER_MS, keys: [], attributes: {}, endsEmpty: true },
};
const SESSION: SessionInfo = { ...LEASE, ttlMs: TTL_NEVER_MS, remainingMs: TTL_NEVER_MS, attributes: {} };
const HELD = { lock: { namespace: 'n', name: Buffer.from('l') } } as never;

/** A range's leader, and what all ranges together say of lease 7. */
class EmptyBed {
  readonly clock = new ManualClock();
  readonly leases = new Leases(memoryEngine());
  lease: LeaseInfo = INFO;
  session: Omit<Extract<QueryResult, { type: 'session' }>, 'type'> = { session: SESSION, locks: [], more: false };
  silent = false;
  questions = 0;
  readonly commands: Command[] = [];
  readonly empty = new EmptyLeases({
    clock: this.clock,
    leases: this.leases,
    intervalMs: ROUND_MS,
    others: {
      command: (command, _options, done) => {
        this.commands.push(command);
        done(undefined, { result: { type: 'leaseRevoke' } });
        return () => {};
      },
      query: (query, _options, done) => {
        this.questions++;
        if (this.silent) done(new ServiceError('UNAVAILABLE', 'nobody answers'), undefined);
        else if (query.type === 'session') done(undefined, { result: { type: 'session', ...this.session } });
        else done(undefined, { result: { type: 'leaseTimeToLive', lease: this.lease } });
        return () => {};
      },
    },
  });

  look(): void {
    this.empty.look(LEASE);
    this.clock.advance(SOON_MS);
  }
}

const REVOKE: Command = { type: 'leaseRevoke', ...LEASE, ifEmpty: true };

describe('a lease that never expires', () => {
  let bed: EmptyBed;
  beforeEach(() => {
    bed = new EmptyBed();
    bed.empty.start();
  });

  test('is ended when a lock was taken from it and no range has anything of it (EM2)', () => {
    bed.look();
    expect(bed.commands).toEqual([REVOKE]);
  });

  test.each<{ what: string; change: (bed: EmptyBed) => void }>([
    { what: 'holds another lock', change: (b) => Object.assign(b, { session: { ...b.session, locks: [HELD] } }) },
    {
      what: 'may hold more than can be told',
      change: (b) => Object.assign(b, { session: { ...b.session, more: true } }),
    },
    { what: 'has a key', change: (b) => Object.assign(b, { lease: { ...INFO, keys: [Buffer.from('k')] } }) },
    {
      what: 'was granted so, and is new (EM1)',
      change: (b) => Object.assign(b, { lease: { ...INFO, endsEmpty: false } }),
    },
    { what: 'is another one by that id', change: (b) => Object.assign(b, { lease: { ...INFO, incarnation: 9 } }) },
    {
      what: 'became another one meanwhile',
      change: (b) => Object.assign(b, { session: { ...b.session, session: { ...SESSION, incarnation: 9 } } }),
    },
    {
      what: 'is not known to have nothing, as a range does not answer',
      change: (b) => Object.assign(b, { silent: true }),
    },
  ])('goes on if it $what', ({ change }) => {
    change(bed);
    bed.look();
    expect(bed.commands).toEqual([]);
    expect(bed.questions).toBeGreaterThan(0);
  });

  test('is found in rounds by its home, if it had nothing elsewhere (EM3)', () => {
    bed.leases.grant({ ...LEASE, ...TERMS });
    bed.leases.grant({ ...LEASE, ...TERMS, id: 8n, change: 0 });
    bed.leases.grant({ ...LEASE, ...TERMS, id: 9n, ttlMs: 60_000 });
    bed.leases.grant({ ...LEASE, ...TERMS, id: 10n });
    bed.leases.attached.attachKey(10n, Buffer.from('k'));
    bed.empty.applied(); // there was no lease when the term began (EM4)
    bed.clock.advance(ROUND_MS + SOON_MS);
    expect([bed.commands, bed.questions]).toEqual([[REVOKE], 2]);
  });

  test('is not looked at by one that leads no longer, nor twice at a time', () => {
    bed.empty.look(LEASE);
    bed.look();
    expect(bed.questions).toBe(2);
    bed.empty.look(LEASE);
    bed.empty.stop();
    bed.look();
    expect([bed.questions, bed.clock.nextTimerMs()]).toEqual([2, undefined]);
  });
});
