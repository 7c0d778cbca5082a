import { ManualClock } from '@remora/base/testing';
import { describe, expect, test } from 'vitest';
import type { RangeReplica } from '../range/range-replica.ts';
import { ActiveRanges } from './active-ranges.ts';
import { RangeRounds } from './range-rounds.ts';
import { ReplicaTable } from './replica-table.ts';

const LOOKS_MAX = 30;

/** A replica as rounds see it. */
class FakeReplica {
  readonly rangeId: number;
  readonly visits: number[] = [];
  serving = true;
  resting = true;
  aheadMs = 0;
  written = 0;
  readonly state = { descriptor: { replicas: [{ nodeId: 1 }] }, rangeTimeMs: 0, outcomes: { count: 0 } };
  readonly #clock: ManualClock;

  constructor(rangeId: number, clock: ManualClock) {
    this.rangeId = rangeId;
    this.#clock = clock;
  }

  get context() {
    return { servingTerm: this.serving ? 1 : 0 };
  }

  get timeMs(): number {
    return this.#clock.monotonicMs() + this.aheadMs;
  }

  housekeep(latestMs: number): void {
    this.visits.push(latestMs);
  }

  writeTime(): void {
    this.written++;
    this.state.rangeTimeMs = this.timeMs;
  }
}

function bed(count: number) {
  const clock = new ManualClock();
  const active = new ActiveRanges();
  const table = new ReplicaTable((rangeId) => active.mark(rangeId));
  const rounds = new RangeRounds({ clock, replicas: table, active, timeCarryMs: 30_000 });
  const replicas = Array.from({ length: count }, (_, i) => new FakeReplica(i + 1, clock));
  for (const each of replicas) table.add({ replica: each as unknown as RangeReplica, leaveCheckpoints: () => {} });
  const round = (times = 1) => {
    for (let i = 0; i < times; i++) {
      clock.advance(1_000);
      rounds.round();
    }
  };
  const visited = () => replicas.filter(({ visits }) => visits.splice(0).length > 0).map(({ rangeId }) => rangeId);
  return { clock, active, table, rounds, replicas, round, visited };
}

describe('rounds over the ranges of a node', () => {
  test('visit all ranges while there are few', () => {
    const { round, replicas } = bed(64);
    round(3);
    expect(replicas.map(({ visits }) => visits.length)).toEqual(replicas.map(() => 3));
  });

  test('visit new ranges at once, then each of many within 30 rounds', () => {
    const { round, replicas, visited } = bed(3_000);
    round();
    expect(visited()).toHaveLength(3_000);
    round();
    expect(visited()).toHaveLength(100);
    round(LOOKS_MAX - 1);
    expect(visited()).toHaveLength(2_900);
    expect(replicas.every(({ visits }) => visits.length <= 2)).toBe(true);
  });

  test('visit a range that something happened to, until it rests', () => {
    const { round, active, replicas, rounds, visited } = bed(3_000);
    round();
    visited();
    const busy = replicas[2_999];
    if (busy === undefined) return expect.unreachable();
    busy.resting = false;
    active.mark(busy.rangeId);
    round(5);
    expect(busy.visits).toHaveLength(5);
    expect([...rounds.active()].map(({ rangeId }) => rangeId)).toEqual([busy.rangeId]);
    busy.resting = true;
    round();
    expect([...rounds.active()]).toEqual([]);
  });

  test('forget a range that ended', () => {
    const { round, table, rounds, replicas } = bed(3_000);
    for (const each of replicas) each.resting = false;
    round();
    table.remove(7);
    round();
    expect([...rounds.active()].some(({ rangeId }) => rangeId === 7)).toBe(false);
    expect([...rounds.active()]).toHaveLength(2_999);
  });

  test('visit all ranges when the time of one leaps ahead, and not otherwise (HK2)', () => {
    const { clock, round, active, rounds, replicas, visited } = bed(3_000);
    round(2);
    visited();
    const ahead = replicas[1_500];
    if (ahead === undefined) return expect.unreachable();
    ahead.aheadMs = 400;
    active.mark(ahead.rangeId);
    round();
    expect(visited().length).toBeLessThan(200);
    ahead.aheadMs = 5_000;
    active.mark(ahead.rangeId);
    round();
    expect(visited()).toHaveLength(3_000);
    round(3);
    expect(visited()).toHaveLength(300);
    expect(rounds.latestTimeMs).toBe(clock.monotonicMs() + 5_000);
  });

  test('have one idle range write its time for all on the same nodes', () => {
    const { round, replicas } = bed(3_000);
    round(95);
    expect(replicas.reduce((sum, { written }) => sum + written, 0)).toBe(3);
  });
});
