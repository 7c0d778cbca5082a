import { ServiceError, type Span } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { LeaseInfo, Query } from '@remora/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { LeaseAudit } from './lease-audit.ts';

const SPAN: Span = { start: Buffer.from([1, 0x6b]), end: Buffer.from([1, 0x6c]) };
const ROUND_MS = 1_000;
/** More than a pause, less than a round. */
const SOON_MS = 200;

interface Asked {
  readonly query: Query;
  readonly answer: (incarnation: number) => void;
  readonly fail: () => void;
}

/** A range with something of two leases that have their homes elsewhere. */
class AuditBed {
  readonly clock = new ManualClock();
  readonly references = new Map([7, 8].map((id) => [id, { id: BigInt(id), incarnation: 5 }]));
  readonly asked: Asked[] = [];
  givenUp = 0;
  /** Leases that have nothing here, and those that were found to be looked at for that. */
  readonly nothingOf = new Set<bigint>();
  readonly empty: string[] = [];
  endsEmpty = false;
  readonly ended: string[] = [];
  /** How often there is more to be taken away. */
  more = 0;
  readonly audit = new LeaseAudit({
    clock: this.clock,
    references: this.#references(),
    intervalMs: ROUND_MS,
    span: () => SPAN,
    propose: ({ id, incarnation, span }, done) => {
      this.ended.push(`${id}/${incarnation}`);
      expect(span).toEqual(SPAN);
      done(this.more-- > 0);
    },
    isEmpty: (id) => this.nothingOf.has(id),
    onEmpty: ({ id, incarnation }) => this.empty.push(`${id}/${incarnation}`),
    others: {
      query: (query, _options, done) => {
        const answer = (incarnation: number): void => {
          const lease = { ...NOTHING, incarnation, endsEmpty: this.endsEmpty };
          done(undefined, { result: { type: 'leaseTimeToLive', lease } });
        };
        const fail = (): void => done(new ServiceError('UNAVAILABLE', 'nobody answers'), undefined);
        this.asked.push({ query, answer, fail });
        return () => this.givenUp++;
      },
    },
  });

  #references() {
    const { references } = this;
    return {
      get size() {
        return references.size;
      },
      all: () => references.values(),
    };
  }

  /** The home says which incarnation it knows (0: none) of whatever was asked last. */
  answer(incarnation: number): void {
    this.asked.at(-1)?.answer(incarnation);
    this.clock.advance(SOON_MS);
  }

  get ids(): readonly unknown[] {
    return this.asked.map(({ query }) => ('id' in query ? query.id : undefined));
  }
}

const NOTHING: LeaseInfo = {
  id: 0n,
  incarnation: 0,
  grantedTtlMs: 0,
  remainingMs: -1,
  keys: [],
  attributes: {},
  endsEmpty: false,
};

describe('the audit of leases of other ranges', () => {
  let bed: AuditBed;
  beforeEach(() => {
    bed = new AuditBed();
    bed.audit.start();
    bed.clock.advance(ROUND_MS);
  });

  test('asks of one after the other, and of all of them again (LA1)', () => {
    expect(bed.ids).toEqual([7n]);
    bed.answer(5);
    bed.answer(5);
    expect(bed.ids).toEqual([7n, 8n]);
    bed.clock.advance(ROUND_MS);
    expect(bed.ids).toEqual([7n, 8n, 7n]);
    expect(bed.ended).toEqual([]);
  });

  test.each([0, 6])('ends what its home does not know: it knows incarnation %i (LA2)', (known) => {
    bed.answer(known);
    bed.answer(5);
    expect(bed.ended).toEqual(['7/5']);
  });

  test('ends a lease until nothing is left, and goes on with the next (LA2)', () => {
    bed.more = 2;
    bed.answer(0);
    bed.clock.advance(SOON_MS);
    expect(bed.ended).toEqual(['7/5', '7/5', '7/5']);
    expect(bed.ids).toEqual([7n, 8n]);
  });

  test('has those looked at that have nothing here, and end when they have nothing anywhere', () => {
    bed.nothingOf.add(8n);
    bed.answer(5);
    bed.answer(5);
    expect(bed.empty).toEqual([]); // neither of them ends so
    bed.endsEmpty = true;
    bed.clock.advance(ROUND_MS);
    bed.answer(5);
    bed.answer(5);
    expect([bed.empty, bed.ended]).toEqual([['8/5'], []]);
  });

  test('concludes nothing from an answer that does not come (LA3)', () => {
    bed.asked[0]?.fail();
    bed.clock.advance(SOON_MS);
    expect(bed.ids).toEqual([7n, 8n]);
    expect(bed.ended).toEqual([]);
  });

  test('concludes nothing from what an earlier term asked for (LA3)', () => {
    const [asked] = bed.asked;
    bed.audit.stop();
    expect(bed.givenUp).toBe(1);
    bed.audit.start();
    asked?.answer(0);
    expect(bed.ended).toEqual([]);
    bed.clock.advance(ROUND_MS);
    expect(bed.ids).toEqual([7n, 7n]);
  });

  test('begins again with the first reference, and has no timer without one (LA4)', () => {
    bed.references.clear();
    bed.answer(5);
    bed.answer(5);
    bed.clock.advance(9 * ROUND_MS);
    expect([bed.ids, bed.clock.pendingTimers]).toEqual([[7n, 8n], 0]);
    bed.references.set(9, { id: 9n, incarnation: 5 });
    bed.audit.applied();
    bed.audit.applied();
    bed.clock.advance(ROUND_MS);
    expect(bed.ids).toEqual([7n, 8n, 9n]);
  });
});
