import { SeededRandom, ServiceError, silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { DrawRevisionsReply, DrawRevisionsRequest } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { type Drawing, RevisionDrawer } from './revision-drawer.ts';

type Told = (error: ServiceError | undefined, reply: DrawRevisionsReply | undefined) => void;

class DrawerBed {
  readonly clock = new ManualClock();
  readonly requests: DrawRevisionsRequest[] = [];
  readonly warnings: string[] = [];
  readonly #told: Told[] = [];
  next = 100;
  readonly drawer = new RevisionDrawer({
    clock: this.clock,
    random: new SeededRandom(1),
    logger: { ...silentLogger, warn: (_fields, message) => this.warnings.push(message) },
    call: (request, done) => {
      this.requests.push(request);
      this.#told.push(done);
    },
  });

  get inFlight(): number {
    return this.#told.length;
  }

  answer(skip: readonly number[] = []): void {
    const request = this.requests.at(-1);
    const blocks = (request?.draws ?? []).flatMap(({ rangeId, count }) => {
      const first = this.next;
      this.next += count;
      return skip.includes(rangeId) ? [] : [{ rangeId, first, count }];
    });
    this.#told.shift()?.(undefined, { newest: this.next - 1, blocks });
    this.clock.runImmediates();
  }

  fail(): void {
    this.#told.shift()?.(new ServiceError('UNAVAILABLE', 'nobody leads'), undefined);
  }
}

/** A range that needs so many revisions, until it gets them. */
class Needing implements Drawing {
  readonly rangeId: number;
  readonly got: number[] = [];
  failures = 0;
  need: number;
  readonly floor: number;

  constructor(rangeId: number, need: number, floor = 0) {
    this.rangeId = rangeId;
    this.need = need;
    this.floor = floor;
  }

  sending() {
    return this.need === 0 ? undefined : { floor: this.floor, count: this.need };
  }

  answered({ first, count }: { readonly first: number; readonly count: number }): void {
    this.got.push(first);
    this.need -= count;
  }

  failed(): void {
    this.failures++;
  }
}

describe('the drawer of a node', () => {
  test('asks once for all ranges that need revisions in a turn, above the highest of theirs', () => {
    const bed = new DrawerBed();
    const ranges = [new Needing(2, 3, 7), new Needing(3, 1, 9)];
    for (const range of [...ranges, ...ranges]) bed.drawer.want(range);
    bed.clock.runImmediates();
    const draws = [
      { rangeId: 2, count: 3 },
      { rangeId: 3, count: 1 },
    ];
    expect(bed.requests).toEqual([{ floor: 9, draws }]);
    bed.answer();
    expect(ranges.map(({ got }) => got)).toEqual([[100], [103]]);
  });

  test('has one request under way; what comes meanwhile goes into the next (D1)', () => {
    const bed = new DrawerBed();
    const [first, second] = [new Needing(2, 1), new Needing(3, 1)];
    bed.drawer.want(first);
    bed.clock.runImmediates();
    bed.drawer.want(second);
    bed.clock.advance(1_000);
    expect(bed.requests.length).toBe(1);
    bed.answer();
    expect(bed.requests.length).toBe(2);
    expect(second.got).toEqual([]);
    bed.answer();
    expect(second.got).toEqual([101]);
  });

  test('asks again with growing pauses, with what is needed by then, until it is answered', () => {
    const bed = new DrawerBed();
    const range = new Needing(2, 1);
    bed.drawer.want(range);
    bed.clock.runImmediates();
    for (let i = 0; i < 20; i++) {
      bed.fail();
      expect(bed.inFlight).toBe(0);
      bed.clock.advance(100);
      expect(bed.inFlight).toBe(1);
    }
    range.need = 5;
    expect(range.failures).toBe(20);
    bed.fail();
    bed.clock.advance(100);
    bed.answer();
    expect(bed.requests.at(-1)?.draws).toEqual([{ rangeId: 2, count: 5 }]);
    expect(range.need).toBe(0);
  });

  test('says every ten seconds that writes wait', () => {
    const bed = new DrawerBed();
    bed.drawer.want(new Needing(2, 1));
    bed.clock.runImmediates();
    for (let i = 0; i < 250; i++) {
      bed.fail();
      bed.clock.advance(100);
    }
    expect(bed.warnings.length).toBe(2);
  });

  test('asks again for a range that the answer leaves out', () => {
    const bed = new DrawerBed();
    const ranges = [new Needing(2, 1), new Needing(3, 1)];
    for (const range of ranges) bed.drawer.want(range);
    bed.clock.runImmediates();
    bed.answer([2]);
    expect(ranges.map(({ failures }) => failures)).toEqual([1, 0]);
    bed.answer();
    expect(ranges.map(({ got }) => got)).toEqual([[102], [101]]);
  });

  test('asks for no range that needs nothing any more', () => {
    const bed = new DrawerBed();
    bed.drawer.want(new Needing(2, 0));
    bed.clock.runImmediates();
    expect(bed.requests).toEqual([]);
  });

  test('tells the newest revision to who asks for that alone, and tries once', () => {
    const bed = new DrawerBed();
    const told: (number | string | undefined)[] = [];
    bed.drawer.newest(55, (error, newest) => told.push(error?.code ?? newest));
    bed.clock.runImmediates();
    expect(bed.requests).toEqual([{ floor: 55, draws: [] }]);
    bed.answer();
    bed.drawer.newest(55, (error, newest) => told.push(error?.code ?? newest));
    bed.clock.runImmediates();
    bed.fail();
    bed.clock.advance(1_000);
    expect(told).toEqual([99, 'UNAVAILABLE']);
    expect(bed.requests.length).toBe(2);
  });

  test('that is stopped asks no more, and answers who waits', () => {
    const bed = new DrawerBed();
    let code: string | undefined;
    bed.drawer.want(new Needing(2, 1));
    bed.drawer.newest(0, (error) => {
      code = error?.code;
    });
    bed.drawer.stop();
    bed.clock.advance(1_000);
    expect([code, bed.requests]).toEqual(['UNAVAILABLE', []]);
  });

  test('answers who asks after it was stopped', () => {
    const bed = new DrawerBed();
    bed.drawer.stop();
    const codes: (string | undefined)[] = [];
    bed.drawer.newest(0, (error) => codes.push(error?.code));
    bed.drawer.one(0, (error) => codes.push(error?.code));
    expect(codes).toEqual(['UNAVAILABLE', 'UNAVAILABLE']);
  });
});

describe('a revision for no range', () => {
  test('is drawn beside those of ranges, one for each who asks, above the highest floor', () => {
    const bed = new DrawerBed();
    const range = new Needing(2, 3, 7);
    bed.drawer.want(range);
    const got: (number | undefined)[] = [];
    for (const floor of [5, 9]) bed.drawer.one(floor, (_error, revision) => got.push(revision));
    bed.clock.runImmediates();
    const draws = [
      { rangeId: 0, count: 2 },
      { rangeId: 2, count: 3 },
    ];
    expect(bed.requests).toEqual([{ floor: 9, draws }]);
    bed.answer();
    expect([got, range.got]).toEqual([[100, 101], [102]]);
  });

  test('is refused when the master does not answer, and not asked for again', () => {
    const bed = new DrawerBed();
    const errors: (string | undefined)[] = [];
    bed.drawer.one(5, (error) => errors.push(error?.code));
    bed.clock.runImmediates();
    bed.fail();
    bed.clock.advance(10_000);
    expect([errors, bed.requests.length]).toEqual([['UNAVAILABLE'], 1]);
  });

  test('is refused when the answer has none', () => {
    const bed = new DrawerBed();
    const errors: (string | undefined)[] = [];
    bed.drawer.one(5, (error) => errors.push(error?.code));
    bed.clock.runImmediates();
    bed.answer([0]);
    expect(errors).toEqual(['UNAVAILABLE']);
  });
});
