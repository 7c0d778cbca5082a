import { ServiceError } from '@remora/base';
import type { Refusal } from '@remora/raft';
import { describe, expect, test } from 'vitest';
import { DESCRIPTOR } from '../../../test/support/state-bed.ts';
import type { NewestDone } from '../../revisions/revision-drawer.ts';
import { ClosedRevisions } from './closed-revisions.ts';

/** A leader whose rounds, draws and log move when the test says so. */
class ClosingBed {
  revision = 40;
  applied = 10;
  earliest = Number.POSITIVE_INFINITY;
  role: 'leader' | 'follower' = 'leader';
  term = 1;
  source: 'range' | 'master' = 'master';
  readonly settles: ((index: number) => void)[] = [];
  readonly rounds: ((refused?: Refusal) => void)[] = [];
  readonly asked: [number, NewestDone][] = [];
  readonly told: string[] = [];
  sealed: ServiceError | undefined;
  readonly closing: ClosedRevisions;

  constructor() {
    const bed = this;
    this.closing = new ClosedRevisions({
      state: {
        get revision() {
          return bed.revision;
        },
        get applied() {
          return { index: bed.applied, term: bed.term };
        },
        get descriptor() {
          return { ...DESCRIPTOR, revisionSource: bed.source };
        },
      },
      prepared: { earliestCommit: () => this.earliest },
      source: { newest: (floor, done) => void this.asked.push([floor, done]) },
      group: () => ({ role: this.role, term: this.term, leaseRead: (done) => void this.rounds.push(done) }),
      whenSettled: (done) => void this.settles.push(done),
      notLeader: () => new ServiceError('NOT_LEADER', 'not here'),
      sealed: () => this.sealed,
    });
  }

  wait(revision: number): () => void {
    return this.closing.whenClosed(revision, (error) => this.told.push(`${revision}: ${error?.code ?? 'closed'}`));
  }

  settle(index: number): void {
    for (const done of this.settles.splice(0)) done(index);
  }

  round(refused?: Refusal): void {
    for (const done of this.rounds.splice(0)) done(refused);
  }

  apply(index: number, revision = this.revision): void {
    this.applied = index;
    this.revision = revision;
    this.closing.applied();
  }
}

describe('a range', () => {
  test('has closed what it has applied, whether it leads or not (CL1)', () => {
    const bed = new ClosingBed();
    bed.role = 'follower';
    bed.wait(40);
    expect([bed.closing.closed, bed.told, bed.rounds]).toEqual([40, ['40: closed'], []]);
  });

  const orders: readonly (readonly ('settle' | 'round' | 'apply')[])[] = [
    ['settle', 'round', 'apply'],
    ['settle', 'apply', 'round'],
    ['round', 'settle', 'apply'],
  ];
  test.each(orders)(
    'closes a higher one when blocks are used up, the log is applied and it leads: %s %s %s (CL2)',
    (...steps) => {
      const bed = new ClosingBed();
      bed.wait(60);
      for (const step of steps) {
        expect(bed.told).toEqual([]);
        expect(bed.closing.closed).toBe(40);
        if (step === 'settle') bed.settle(12);
        else if (step === 'round') bed.round();
        else bed.apply(12);
      }
      expect(bed.told).toEqual(['60: closed']);
      expect(bed.closing.closed).toBe(60);
    },
  );

  test('begins a round of its own for who came while one was under way (CL2)', () => {
    const bed = new ClosingBed();
    bed.wait(60);
    bed.wait(80);
    expect(bed.rounds.length).toBe(1);
    bed.settle(10);
    bed.round();
    expect(bed.told).toEqual(['60: closed']);
    expect(bed.rounds.length).toBe(1);
    bed.settle(10);
    bed.round();
    expect(bed.told).toEqual(['60: closed', '80: closed']);
  });

  test('ends the round of who does not wait any more, so that who comes next gets one (CL2)', () => {
    const bed = new ClosingBed();
    const takeBack = bed.wait(60);
    bed.settle(12);
    bed.round();
    takeBack();
    bed.apply(12);
    bed.wait(80);
    bed.settle(12);
    bed.round();
    expect(bed.told).toEqual(['80: closed']);
  });

  test('answers at once who waits for what it applies meanwhile', () => {
    const bed = new ClosingBed();
    bed.wait(60);
    bed.apply(11, 75);
    expect(bed.told).toEqual(['60: closed']);
  });

  test('closes nothing at or above what a prepared transaction may commit at (CL3)', () => {
    const bed = new ClosingBed();
    bed.earliest = 50;
    bed.wait(60);
    bed.settle(10);
    bed.round();
    expect([bed.closing.closed, bed.told]).toEqual([49, []]);
    bed.earliest = Number.POSITIVE_INFINITY;
    bed.apply(11);
    expect([bed.closing.closed, bed.told]).toEqual([60, ['60: closed']]);
  });

  test('keeps what it has closed when a transaction is prepared afterwards, but not over a merge (CL4)', () => {
    const bed = new ClosingBed();
    bed.wait(60);
    bed.settle(10);
    bed.round();
    expect(bed.closing.closed).toBe(60);
    bed.earliest = 41;
    expect(bed.closing.closed).toBe(60);
    bed.closing.keysChanged();
    expect(bed.closing.closed).toBe(40);
  });

  test('keeps what it has closed when it leads no more, and sends who waits to the leader (CL4)', () => {
    const bed = new ClosingBed();
    bed.wait(60);
    bed.settle(10);
    bed.round();
    bed.wait(80);
    bed.settle(10);
    bed.closing.abandon();
    bed.round();
    expect(bed.told).toEqual(['60: closed', '80: NOT_LEADER']);
    expect(bed.closing.closed).toBe(60);
  });

  test.each<{ name: string; end: (bed: ClosingBed) => void; code: string }>([
    { name: 'is refused', end: (bed) => bed.round('notLeader'), code: 'NOT_LEADER' },
    { name: 'finds no room', end: (bed) => bed.round('queueFull'), code: 'RESOURCE_EXHAUSTED' },
    {
      name: 'ends in another term',
      end: (bed) => {
        bed.term = 3;
        bed.round();
      },
      code: 'NOT_LEADER',
    },
  ])('closes nothing by a round that $name', ({ end, code }) => {
    const bed = new ClosingBed();
    bed.wait(60);
    bed.settle(10);
    end(bed);
    expect([bed.told, bed.closing.closed]).toEqual([[`60: ${code}`], 40]);
  });

  test('forgets who does not wait any more', () => {
    const bed = new ClosingBed();
    const forget = bed.wait(60);
    forget();
    bed.settle(10);
    bed.round();
    expect([bed.told, bed.closing.waiting]).toEqual([[], 0]);
  });

  test('closes the newest that anybody was given, above its own, when asked how far it is', () => {
    const bed = new ClosingBed();
    bed.closing.closeNewest((error) => bed.told.push(error?.code ?? 'done'));
    const [floor, answer] = bed.asked[0] ?? [];
    expect(floor).toBe(40);
    answer?.(undefined, 90);
    bed.settle(10);
    bed.round();
    expect([bed.told, bed.closing.closed]).toEqual([['done'], 90]);
    bed.closing.closeNewest((error) => bed.told.push(error?.code ?? 'done'));
    bed.asked[1]?.[1](new ServiceError('UNAVAILABLE', 'no master'), undefined);
    expect(bed.told).toEqual(['done', 'UNAVAILABLE']);
  });

  test('that counts by itself asks nobody how far it is, but has to lead: a later leader may be further', () => {
    const bed = new ClosingBed();
    bed.source = 'range';
    for (const refused of [undefined, 'notLeader'] as const) {
      bed.closing.closeNewest((error) => bed.told.push(error?.code ?? 'done'));
      bed.round(refused);
    }
    expect([bed.told, bed.asked]).toEqual([['done', 'NOT_LEADER'], []]);
  });

  test('that counts by itself closes nothing above its last revision', () => {
    const bed = new ClosingBed();
    bed.source = 'range';
    bed.wait(40);
    bed.wait(41);
    expect([bed.told, bed.rounds]).toEqual([['40: closed', '41: FUTURE_REVISION'], []]);
  });

  test('names the last revision that it may have counted itself as the floor', () => {
    const bed = new ClosingBed();
    bed.source = 'range';
    expect(bed.closing.floor).toBe(40);
    bed.source = 'master';
    expect(bed.closing.floor).toBe(40);
    bed.apply(11, 75);
    expect(bed.closing.floor).toBe(40);
  });
});

describe('what is on its way when a revision is named that was given out before', () => {
  const named = (bed: ClosingBed, revision: number): void =>
    void bed.closing.whenUsedUp(revision, (error) => bed.told.push(`${revision}: ${error?.code ?? 'used up'}`));

  test('is used up when blocks are, and the log is applied; nothing is closed by that, and nobody asked (CL6)', () => {
    const bed = new ClosingBed();
    named(bed, 60);
    bed.settle(12);
    bed.apply(11, 50);
    expect(bed.told).toEqual([]);
    bed.apply(12, 55);
    expect([bed.told, bed.closing.closed]).toEqual([['60: used up'], 55]);
    expect([bed.asked, bed.rounds]).toEqual([[], []]);
  });

  test('is nothing where the range has closed that, or counts by itself', () => {
    const bed = new ClosingBed();
    named(bed, 40);
    bed.source = 'range';
    named(bed, 60);
    expect([bed.told, bed.settles]).toEqual([['40: used up', '60: used up'], []]);
  });

  test('is not known any more when leadership is lost', () => {
    const bed = new ClosingBed();
    named(bed, 60);
    bed.closing.abandon();
    bed.settle(10);
    expect(bed.told).toEqual(['60: NOT_LEADER']);
  });
});

describe('a revision that a range is to move on to', () => {
  const asked = (bed: ClosingBed, revision: number): void =>
    bed.closing.whenGiven(revision, (error) => bed.told.push(`${revision}: ${error?.code ?? 'given'}`));

  test('has to be one that the master has given out (CL5)', () => {
    const bed = new ClosingBed();
    asked(bed, 60);
    asked(bed, 61);
    expect([bed.told, bed.asked.map(([floor]) => floor)]).toEqual([[], [40, 40]]);
    for (const [, done] of bed.asked.splice(0)) done(undefined, 60);
    expect(bed.told).toEqual(['60: given', '61: FUTURE_REVISION']);
  });

  test('is asked for again when the master does not answer', () => {
    const bed = new ClosingBed();
    asked(bed, 60);
    bed.asked[0]?.[1](new ServiceError('NOT_LEADER', 'no master'), undefined);
    expect(bed.told).toEqual(['60: UNAVAILABLE']);
  });

  test('needs no master when the range has reached it, or counts by itself', () => {
    const bed = new ClosingBed();
    asked(bed, 40);
    bed.source = 'range';
    asked(bed, 60);
    expect([bed.told, bed.asked]).toEqual([['40: given', '60: given'], []]);
  });
});
