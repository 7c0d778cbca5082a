import { ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { type RangeInfo, staleEpoch } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { LeaderWaits } from './leader-waits.ts';

const OWN = 1;

class Bed {
  readonly clock = new ManualClock();
  known: RangeInfo | ServiceError = info(0);
  readonly waits = new LeaderWaits({ clock: this.clock, nodeId: OWN, look: () => this.known });
  readonly told: (number | string)[] = [];

  ask(waitMs: number): () => void {
    return this.waits.add({ rangeId: 2, waitMs }, (error, known) => {
      this.told.push(error?.code ?? known?.leaderNode ?? 'nothing');
    });
  }
}

function info(leaderNode: number): RangeInfo {
  return { rangeId: 2, leaderNode, rangeTimeMs: 5, revision: 1, term: 1 };
}

const NO_REPLICA_HERE = new ServiceError('RANGE_NOT_FOUND', 'none');
const MOVED = staleEpoch([]);

describe('who waits for the leader of a range', () => {
  test.each([
    { name: 'this node leads', known: info(OWN), waitMs: 100, told: OWN },
    { name: 'its keys are elsewhere', known: MOVED, waitMs: 100, told: 'STALE_EPOCH' },
    { name: 'it does not wait', known: info(3), waitMs: 0, told: 3 },
  ])('is told at once when $name', ({ known, waitMs, told }) => {
    const bed = new Bed();
    bed.known = known;
    bed.ask(waitMs);
    expect(bed.told).toEqual([told]);
    expect(bed.waits.size).toBe(0);
  });

  test.each([
    { name: 'nobody leads', before: info(0) },
    { name: 'another node does', before: info(3) },
    { name: 'there is no replica here yet', before: NO_REPLICA_HERE },
  ])('while $name is told as soon as this node leads', ({ before }) => {
    const bed = new Bed();
    bed.known = before;
    bed.ask(100);
    bed.ask(100);
    bed.waits.changed(2); // of no concern
    expect(bed.told).toEqual([]);
    bed.known = info(OWN);
    bed.waits.changed(3); // another range
    expect(bed.told).toEqual([]);
    bed.waits.changed(2);
    expect(bed.told).toEqual([OWN, OWN]);
    bed.clock.advance(1_000);
    expect([bed.told.length, bed.waits.size, bed.clock.pendingTimers]).toEqual([2, 0, 0]);
  });

  test('is told when the range ends here where its keys went', () => {
    const bed = new Bed();
    bed.ask(100);
    bed.known = MOVED;
    bed.waits.changed(2);
    expect(bed.told).toEqual(['STALE_EPOCH']);
  });

  test('is told what is known when the time is over', () => {
    const bed = new Bed();
    bed.known = NO_REPLICA_HERE;
    bed.ask(100);
    bed.clock.advance(99);
    expect(bed.told).toEqual([]);
    bed.clock.advance(1);
    expect(bed.told).toEqual(['RANGE_NOT_FOUND']);
    bed.known = info(3);
    bed.ask(1_000_000);
    bed.clock.advance(1_000);
    expect(bed.told.at(-1)).toBe(3);
  });

  test('is forgotten when it takes the question back', () => {
    const bed = new Bed();
    const takeBack = bed.ask(100);
    takeBack();
    takeBack();
    expect([bed.waits.size, bed.clock.pendingTimers]).toEqual([0, 0]);
    bed.known = info(OWN);
    bed.waits.changed(2);
    expect(bed.told).toEqual([]);
  });

  test('is told at once when too many wait already', () => {
    const bed = new Bed();
    for (let i = 0; i < 10_000; i++) bed.ask(100);
    expect(bed.told).toEqual([]);
    bed.ask(100);
    expect(bed.told).toEqual([0]);
  });
});
