/** A store's reports, by changes alone, beside what a master makes of them (HB1, HB2, NR2). */
import { SeededRandom } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { NodeHeartbeat, RangeReport } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { StoreHeartbeat, type StoreHeartbeatDeps } from '../../packages/dataserver/src/store-heartbeat.ts';
import { NodeReports } from '../../packages/master/src/nodes/node-reports.ts';

/** More than are repeated in every heartbeat. */
const RANGES = 200;
/** Heartbeats after which each report was repeated. */
const REPEATED_WITHIN = 30;

type Replica = ReturnType<StoreHeartbeatDeps['replicas']> extends Iterable<infer R> ? R : never;

/** What a report is made of, as a test changes it. */
class FakeReplica {
  readonly rangeId: number;
  leading = false;
  readonly group = {
    replicaId: 1,
    term: 1,
    status: () => ({ conf: { votersOutgoing: [] }, changePending: false, firstIndex: 1, lastIndex: 9, progress: [] }),
  };
  readonly state = {
    descriptor: { epoch: { confVersion: 1, version: 1 } },
    applied: { index: 1, term: 1 },
    bytes: 0,
    keys: 0,
  };
  writesPerS = 0;
  readonly load = {
    rates: () => ({ readsPerS: 0, readBytesPerS: 0, writesPerS: this.writesPerS, writeBytesPerS: 0 }),
  };
  readonly members = { liveness: { look() {}, silentMs: () => 0 } };
  readonly splitReasons = { remark: undefined };

  constructor(rangeId: number) {
    this.rangeId = rangeId;
  }

  change(random: SeededRandom): void {
    const kind = random.int(6);
    if (kind === 0) this.leading = !this.leading;
    else if (kind === 1) this.group.term++;
    else if (kind === 2) this.state.applied.index++;
    else if (kind === 3) this.state.bytes += 10;
    else if (kind === 4) this.writesPerS = random.int(3);
    else this.state.descriptor = { epoch: { confVersion: 1 + random.int(9), version: 1 } };
  }
}

class Bed {
  readonly random: SeededRandom;
  readonly replicas = new Map<number, FakeReplica>();
  readonly store: StoreHeartbeat;
  readonly marks = new Set<number>();
  readonly master = new NodeReports();
  /** The last heartbeat was answered. */
  #known = false;
  #nextId = 1;

  constructor(seed: number) {
    this.random = new SeededRandom(seed);
    for (let i = 0; i < RANGES; i++) this.create();
    const replicas = this.replicas as ReadonlyMap<number, unknown> as ReadonlyMap<number, Replica>;
    this.store = new StoreHeartbeat({
      clock: new ManualClock(),
      replica: (rangeId) => replicas.get(rangeId),
      replicas: () => replicas.values(),
      count: () => replicas.size,
      marks: this.marks,
      split: () => expect.unreachable(),
      merge: () => expect.unreachable(),
      isMerging: () => false,
    });
  }

  create(): void {
    this.replicas.set(this.#nextId, new FakeReplica(this.#nextId));
    this.marks.add(this.#nextId);
    this.#nextId++;
  }

  change(): void {
    const ids = [...this.replicas.keys()];
    const rangeId = ids[this.random.int(ids.length)] ?? 0;
    this.marks.add(rangeId);
    if (this.random.int(8) === 0) this.replicas.delete(rangeId);
    else this.replicas.get(rangeId)?.change(this.random);
    if (this.random.int(8) === 0) this.create();
  }

  /** Returns the ranges in the heartbeat, and whether the masters took it. */
  beat(fate: 'answered' | 'lost' | 'answer lost' = 'answered'): {
    readonly ranges: readonly RangeReport[];
    readonly taken: boolean;
  } {
    const report = this.store.report(!this.#known);
    this.#known = false;
    if (fate === 'lost') return { ranges: report.ranges, taken: false };
    const taken = this.master.heard({ nodeId: 1, ...report } as NodeHeartbeat, 0);
    this.#known = taken && fate === 'answered';
    return { ranges: report.ranges, taken };
  }

  get knownToMaster(): readonly RangeReport[] {
    return [...(this.master.last(1)?.ranges ?? [])].sort((a, b) => a.rangeId - b.rangeId);
  }

  /** What a complete report would be. */
  get truth(): readonly RangeReport[] {
    const other = new StoreHeartbeat({
      clock: new ManualClock(),
      replica: () => undefined,
      replicas: () => this.replicas.values() as Iterable<unknown> as Iterable<Replica>,
      count: () => this.replicas.size,
      marks: new Set(),
      split: () => expect.unreachable(),
      merge: () => expect.unreachable(),
      isMerging: () => false,
    });
    return other.report(true).ranges;
  }
}

describe('heartbeats with what changed', () => {
  test.each(Array.from({ length: 30 }, (_, seed) => seed))(
    'leave the masters with all that is true of a node, through losses and new leaders: seed %i',
    (seed) => {
      const bed = new Bed(seed);
      for (let step = 0; step < 60; step++) {
        for (let i = bed.random.int(5); i > 0; i--) bed.change();
        if (bed.random.int(15) === 0) bed.master.termBegan(0);
        const fate = bed.random.int(6);
        const { taken } = bed.beat(fate === 0 ? 'lost' : fate === 1 ? 'answer lost' : 'answered');
        if (taken) expect(bed.knownToMaster).toEqual(bed.truth);
      }
      bed.beat();
      bed.beat(); // The one before may be refused.
      expect(bed.knownToMaster).toEqual(bed.truth);
    },
  );

  test('are small while nothing changes, and repeat each report within 30 of them (HB2)', () => {
    const bed = new Bed(1);
    expect(bed.beat().ranges).toHaveLength(RANGES);
    const repeated = new Set<number>();
    for (let i = 0; i < REPEATED_WITHIN; i++) {
      const { ranges } = bed.beat();
      expect(ranges.length).toBeLessThanOrEqual(RANGES / 3);
      for (const { rangeId } of ranges) repeated.add(rangeId);
    }
    expect(repeated.size).toBe(RANGES);
  });

  test('have all reports after one that was not answered (HB1)', () => {
    const bed = new Bed(1);
    bed.beat();
    bed.beat('lost');
    expect(bed.beat().ranges).toHaveLength(RANGES);
    bed.beat('answer lost');
    expect(bed.beat().ranges).toHaveLength(RANGES);
  });
});
