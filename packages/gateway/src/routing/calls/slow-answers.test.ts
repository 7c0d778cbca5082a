import { ManualClock } from '@remora/base/testing';
import type { RangeDescriptor } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import type { LeaderSearch } from '../routes/leader-search.ts';
import { Routes } from '../routes/routes.ts';
import { SlowAnswers } from './slow-answers.ts';

const RANGE: RangeDescriptor = {
  rangeId: 2,
  start: new Uint8Array(0),
  end: new Uint8Array(0),
  epoch: { confVersion: 1, version: 1 },
  replicas: [1, 2, 3].map((nodeId) => ({ replicaId: nodeId, nodeId, type: 'voter' as const })),
  revisionSource: 'range',
};
const VIEW = { clusterId: 'c', nodes: [], ranges: [RANGE], leaders: [], masterLeader: 0 };
const KEY = Buffer.from([3, 0x6b]);
const NODE = 1;

class Bed {
  readonly clock = new ManualClock();
  readonly routes = new Routes(this.clock, () => VIEW);
  /** Searches that are under way, each with how it ends. */
  readonly searches = new Set<() => void>();
  searched = 0;
  moved = 0;
  readonly #slow: SlowAnswers;

  constructor() {
    const wait: LeaderSearch['wait'] = (_range, _key, found) => {
      this.searched++;
      this.searches.add(found);
      return () => this.searches.delete(found);
    };
    const search = { wait } as unknown as LeaderSearch;
    this.#slow = new SlowAnswers({ clock: this.clock, routes: this.routes, search });
    this.routes.learnLeader(RANGE.rangeId, NODE);
  }

  watch(): () => void {
    const id = this.#slow.watch({ range: RANGE, key: KEY, node: NODE, moved: () => this.moved++ });
    return () => this.#slow.forget(id);
  }

  find(leader: number): void {
    this.routes.learnLeader(RANGE.rangeId, leader);
    for (const found of [...this.searches]) {
      this.searches.delete(found);
      found();
    }
  }
}

describe('a request that its leader does not answer', () => {
  test('is asked elsewhere as soon as another node leads; nobody is asked before it is slow', () => {
    const bed = new Bed();
    const forget = bed.watch();
    bed.clock.advance(149);
    expect(bed.searched).toBe(0);
    bed.clock.advance(60);
    expect(bed.searched).toBe(1);
    bed.clock.advance(10_000);
    expect([bed.searched, bed.moved]).toEqual([1, 0]);
    bed.find(3);
    expect(bed.moved).toBe(1);
    bed.clock.advance(10_000);
    forget();
    expect([bed.searched, bed.moved, bed.clock.pendingTimers]).toEqual([1, 1, 0]);
  });

  test('stays with a leader that says that it is one, and is asked about again after longer and longer', () => {
    const bed = new Bed();
    const forget = bed.watch();
    const at: number[] = [];
    for (let ms = 0; ms < 5_000; ms += 10) {
      bed.clock.advance(10);
      if (bed.searches.size > 0) at.push(ms);
      bed.find(NODE);
    }
    expect(bed.moved).toBe(0);
    const pauses = at.slice(1).map((ms, i) => ms - (at[i] ?? 0));
    expect(pauses.length).toBeGreaterThan(2);
    for (const [i, pause] of pauses.slice(1).entries()) expect(pause).toBeGreaterThan(1.5 * (pauses[i] ?? 0));
    forget();
  });

  test('is forgotten, with its question, when it is answered', () => {
    const bed = new Bed();
    const early = bed.watch();
    const late = bed.watch();
    bed.clock.advance(100);
    early();
    bed.clock.advance(100);
    expect(bed.searches.size).toBe(1);
    late();
    expect(bed.searches.size).toBe(0);
    bed.clock.advance(10_000);
    expect([bed.searched, bed.moved, bed.clock.pendingTimers]).toEqual([1, 0, 0]);
  });
});
