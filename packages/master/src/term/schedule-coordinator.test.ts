import { type ServiceError, silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { AskSplitRequest, LeaderReport, NodeDuty, RangeDescriptor, RangeInstruction } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { CONF, descriptor } from '../../test/support/descriptor.ts';
import { SettingsSchema } from '../admin/settings.ts';
import { MasterState } from '../metadata/master-state.ts';
import { NodeReports } from '../nodes/node-reports.ts';
import { ScheduleCoordinator } from './schedule-coordinator.ts';

const LEAD: LeaderReport = {
  ...{ keys: 0, logEntries: 0, joint: false, changePending: false },
  ...{ readsPerS: 0, readBytesPerS: 0, writesPerS: 0, writeBytesPerS: 0, peers: [], sizeRemark: '' },
};

/** A leader of the masters over four nodes; the first range has replicas on three of them, and is led on the first. */
class CoordinatorBed {
  readonly clock = new ManualClock();
  readonly state = new MasterState(CONF);
  readonly reports = new NodeReports();
  readonly #schema = new SettingsSchema({ replicas: 3 });
  #replicaIds = 5_000;
  /** Proposed and not applied. */
  readonly #log: (() => void)[] = [];
  /** Whether what is proposed is applied at once; otherwise with `commit`. */
  commits = true;
  care = this.newTerm(1);
  /** Nodes that say nothing. */
  silent: readonly number[] = [];
  /** For how long the range's leader has not heard its other replicas, by node. */
  readonly silentMs = new Map<number, number>();

  constructor() {
    for (const id of [1, 2, 3, 4]) this.state.apply({ type: 'registerNode', descriptor: descriptor(id) });
    this.state.apply({ type: 'bootstrapRange', nodeIds: [1, 2, 3] });
  }

  newTerm(term: number): ScheduleCoordinator {
    this.reports.termBegan(this.clock.monotonicMs());
    let known: { readonly texts: unknown; readonly values: ReturnType<SettingsSchema['effective']> } | undefined;
    this.care = new ScheduleCoordinator({
      ...{ term, clock: this.clock, logger: silentLogger, state: this.state, reports: this.reports },
      settings: () => {
        const { texts } = this.state.settings;
        if (known?.texts !== texts) known = { texts, values: this.#schema.effective(texts) };
        return known.values;
      },
      nextReplicaId: () => this.#replicaIds++,
      propose: (command, done) => {
        this.#log.push(() => {
          this.state.apply(command);
          done(undefined);
        });
        if (this.commits) this.commit();
      },
    });
    return this.care;
  }

  commit(): void {
    for (const apply of this.#log.splice(0)) apply();
  }

  set(name: string, text: string): void {
    this.state.apply({ type: 'changeSetting', expected: this.state.settings.version, name, text });
  }

  setDuty(nodeId: number, duty: NodeDuty, forMs = 0): ServiceError | undefined {
    let refused: ServiceError | undefined;
    this.care.setDuty({ nodeId, duty, forMs }, (error) => {
      refused = error;
    });
    return refused;
  }

  get range(): RangeDescriptor {
    const [range] = this.state.ranges();
    if (range === undefined) throw new Error('there is a range');
    return range;
  }

  /** Nodes report, the range's leader among them, then a second passes; gives what the leader is told. */
  second(): RangeInstruction | undefined {
    for (const { nodeId, incarnation } of this.state.nodes()) {
      if (this.silent.includes(nodeId)) continue;
      const space = { capacityBytes: 1_000, availableBytes: 900 };
      const heartbeat = {
        nodeId,
        incarnation,
        space,
        labels: { zone: `z${nodeId}` },
        hasMaster: true,
        ranges: [],
        results: [],
        conditions: [],
        authRevision: 0,
      };
      this.reports.heard(heartbeat, this.clock.monotonicMs());
    }
    const told = this.report();
    this.clock.advance(1_000);
    this.care.tick();
    return told;
  }

  report(lead: Partial<LeaderReport> = {}): RangeInstruction | undefined {
    const { range } = this;
    const own = range.replicas.find(({ nodeId }) => nodeId === 1);
    const peers = range.replicas
      .filter((replica) => replica !== own)
      .map(({ replicaId, nodeId }) => ({
        ...{ replicaId, state: 'replicate' as const, match: 1, lagEntries: 0, lagBytes: 0, caughtUp: true },
        silentMs: this.silentMs.get(nodeId) ?? 0,
      }));
    const about = { rangeId: range.rangeId, replicaId: own?.replicaId ?? 0, epoch: range.epoch, term: 3, applied: 1 };
    const report = { ...about, bytes: 10, silent: false, lead: { ...LEAD, peers, ...lead } };
    return this.care.reported({ descriptor: range, report });
  }

  seconds(count: number): RangeInstruction | undefined {
    let told: RangeInstruction | undefined;
    for (let i = 0; i < count; i++) told = this.second();
    return told;
  }

  /** A replica is lost, as its range's leader says. */
  lose(nodeId: number): void {
    this.silent = [...this.silent, nodeId];
    this.silentMs.set(nodeId, 3_600_000);
  }
}

describe('the care of a new leader', () => {
  test('begins nothing before it has heard of all nodes, or waited for them long enough (CC1)', () => {
    const bed = new CoordinatorBed();
    bed.lose(3);
    expect(bed.seconds(13)).toBeUndefined();
    expect(bed.care.restsBecause).toMatch('has not heard from all nodes');
    expect(bed.setDuty(2, 'removed')?.code).toBe('UNAVAILABLE');
    expect(bed.seconds(4)).toEqual({ type: 'addLearner', nodeId: 4, replicaId: 5_000 });
  });

  test('begins as soon as all were heard', () => {
    const bed = new CoordinatorBed();
    bed.silentMs.set(3, 3_600_000);
    expect(bed.seconds(2)).toMatchObject({ type: 'addLearner', nodeId: 4 });
    expect(bed.care.restsBecause).toBeUndefined();
  });

  test('remembers what operators of earlier leaders have done, in words and wall time (OH1)', () => {
    const bed = new CoordinatorBed();
    bed.silentMs.set(3, 3_600_000);
    bed.seconds(2);
    const [operator] = bed.care.scheduling.controller.active();
    bed.care.scheduling.controller.cancel(operator?.operatorId ?? 0, 'x'.repeat(1_000), bed.clock.monotonicMs());
    bed.newTerm(2);
    const [ended] = bed.state.operators;
    const { operatorId, rangeId, kind, reason } = operator ?? expect.fail();
    expect(ended).toMatchObject({
      operatorId,
      rangeId,
      kind,
      reason,
      status: 'cancelled',
      outcome: `${'x'.repeat(300)}…`,
    });
    expect(ended?.steps[0]).toBe('add a learner on node 4');
    expect(ended?.endedMs).toBe(Math.round(bed.clock.wallMs()));
    expect(bed.state.operators).toHaveLength(1);
  });

  test('tells the operators of its term from those of others', () => {
    const bed = new CoordinatorBed();
    bed.silentMs.set(3, 3_600_000);
    bed.seconds(3);
    const [first] = bed.care.scheduling.controller.active();
    bed.newTerm(2);
    bed.seconds(3);
    const [second] = bed.care.scheduling.controller.active();
    expect(second?.operatorId).toBeGreaterThan(first?.operatorId ?? 0);
  });
});

test('nothing is begun while scheduling is off, and is begun once it is on', () => {
  const bed = new CoordinatorBed();
  bed.set('scheduling', 'false');
  bed.silentMs.set(3, 3_600_000);
  expect(bed.seconds(20)).toBeUndefined();
  bed.set('scheduling', '');
  expect(bed.seconds(3)).toMatchObject({ type: 'addLearner' });
});

test('a replica counts as lost after the time that is set for nodes', () => {
  const bed = new CoordinatorBed();
  bed.silentMs.set(3, 60_000);
  expect(bed.seconds(3)).toBeUndefined();
  bed.set('down-after', '30s');
  expect(bed.seconds(3)).toMatchObject({ type: 'addLearner' });
});

describe('what nodes are there for', () => {
  test('a node that is decommissioned gives its replicas away, whoever leads the masters', () => {
    const bed = new CoordinatorBed();
    bed.seconds(2);
    expect(bed.setDuty(3, 'decommissioning')).toBeUndefined();
    bed.newTerm(2);
    expect(bed.seconds(3)).toMatchObject({ type: 'addLearner', nodeId: 4 });
  });

  test('what people decide stays when a maintenance window ends while it is being replicated', () => {
    const bed = new CoordinatorBed();
    bed.seconds(2);
    bed.setDuty(3, 'maintenance', 60_000);
    bed.seconds(59);
    bed.commits = false;
    bed.setDuty(3, 'decommissioning');
    bed.seconds(3); // the window is over meanwhile
    bed.commit();
    expect(bed.state.dutyOf(3).duty).toBe('decommissioning');
  });

  test('a second node is not taken away while that of another is being replicated (CC5)', () => {
    const bed = new CoordinatorBed();
    bed.seconds(2);
    bed.commits = false;
    bed.setDuty(2, 'maintenance', 60_000);
    expect(bed.setDuty(3, 'maintenance', 60_000)).toMatchObject({ code: 'UNAVAILABLE' });
    bed.commit();
    expect([2, 3].map((nodeId) => bed.state.dutyOf(nodeId).duty)).toEqual(['maintenance', 'serving']);
    bed.setDuty(3, 'draining');
    bed.commit();
    expect(bed.state.dutyOf(3).duty).toBe('draining');
  });

  test('what people take back while it is being replicated is taken back', () => {
    const bed = new CoordinatorBed();
    bed.seconds(2);
    bed.commits = false;
    bed.setDuty(3, 'decommissioning');
    bed.setDuty(3, 'serving');
    bed.commit();
    expect(bed.state.dutyOf(3).duty).toBe('serving');
  });

  test('a maintenance window ends by itself; until then silence within it is planned', () => {
    const bed = new CoordinatorBed();
    bed.seconds(2);
    expect(bed.setDuty(3, 'maintenance', 60_000)).toBeUndefined();
    bed.lose(3);
    expect(bed.seconds(50)).toBeUndefined();
    expect(bed.state.dutyOf(3).duty).toBe('maintenance');
    expect(bed.seconds(15)).toMatchObject({ type: 'addLearner', nodeId: 4 });
    expect(bed.state.dutyOf(3).duty).toBe('serving');
  });

  test.each([0, 31 * 24 * 3_600_000])('a window of %i ms is refused', (forMs) => {
    const bed = new CoordinatorBed();
    bed.seconds(2);
    expect(bed.setDuty(3, 'maintenance', forMs)?.message).toMatch('at most 30d');
  });
});

test('a pause of a scheduler outlives the leader that it was told, and ends', () => {
  const bed = new CoordinatorBed();
  bed.seconds(2);
  bed.care.pauseScheduler({ name: 'bytes', forMs: 30_000 }, () => {});
  const leftMs = () => {
    const { schedulers } = bed.care.scheduling;
    const untilMs = schedulers.list(bed.care.nowMs).find(({ name }) => name === 'bytes')?.pausedUntilMs;
    return untilMs === undefined ? 0 : untilMs - bed.care.nowMs;
  };
  expect(leftMs()).toBe(30_000);
  bed.newTerm(2);
  bed.seconds(10);
  expect(leftMs()).toBeGreaterThan(15_000);
  bed.seconds(25);
  expect(leftMs()).toBe(0);
});

test('a range that was merged away is gone before the one that took its keys is looked at (CC3)', () => {
  const bed = new CoordinatorBed();
  const { range } = bed;
  const at = (version: number) => ({ epoch: { confVersion: 1, version } });
  bed.state.apply({ type: 'describeRange', descriptor: { ...range, end: Buffer.from('m'), ...at(2) } });
  const second = { ...range, rangeId: 9, start: Buffer.from('m'), ...at(2) };
  bed.state.apply({ type: 'describeRange', descriptor: second });
  bed.second();
  bed.care.reported({
    descriptor: second,
    report: { ...{ rangeId: 9, replicaId: 1_001, ...at(2), term: 3, applied: 1, bytes: 1, silent: false }, lead: LEAD },
  });
  expect(bed.care.scheduling.model.rangeCount).toBe(2);
  bed.state.apply({ type: 'describeRange', descriptor: { ...range, ...at(3) } });
  bed.report();
  expect(bed.care.scheduling.model.rangeCount).toBe(1);
});

describe('ids for a split', () => {
  const ask = (bed: CoordinatorBed, cause: AskSplitRequest['cause'], rangeId = 2): AskSplitRequest => {
    return { range: { ...bed.range, rangeId }, at: undefined, cause };
  };
  const rows: readonly { name: string; given: (bed: CoordinatorBed) => void; says: string; admin: boolean }[] = [
    {
      name: 'while the membership changes',
      given: (bed) => void bed.report({ joint: true }),
      says: 'its membership is changing',
      admin: false,
    },
    { name: 'when scheduling is off', given: (bed) => bed.set('scheduling', 'off'), says: 'is off', admin: true },
    {
      name: 'when splits are paused',
      given: (bed) => bed.set('splits-under-way-max', '0'),
      says: 'splits are paused',
      admin: true,
    },
    {
      name: 'while as many are splitting as may',
      given: (bed) => {
        bed.set('splits-under-way-max', '1');
        bed.care.splitBegan(ask(bed, 'size'));
      },
      says: '1 others are being split',
      admin: true,
    },
    {
      name: 'while an operator is at it',
      given: (bed) => {
        bed.silentMs.set(3, 3_600_000);
        bed.seconds(2);
      },
      says: 'is running for it',
      admin: true,
    },
  ];
  test.each(rows)('are not given out $name', ({ given, says, admin }) => {
    const bed = new CoordinatorBed();
    bed.seconds(2);
    given(bed);
    const rangeId = says.includes('others') ? 77 : 2;
    expect(bed.care.splitRefusal(ask(bed, 'load', rangeId))).toMatchObject({
      code: 'UNAVAILABLE',
      message: expect.stringContaining(says),
    });
    expect(bed.care.splitRefusal(ask(bed, 'admin', rangeId)) === undefined).toBe(admin);
  });

  test('are given out again to who has them, and for another range once that one is cut', () => {
    const bed = new CoordinatorBed();
    bed.set('splits-under-way-max', '1');
    bed.care.splitBegan(ask(bed, 'size'));
    expect(bed.care.splitRefusal(ask(bed, 'size'))).toBeUndefined();
    expect(bed.care.splitRefusal(ask(bed, 'size', 77))).toBeDefined();
    const cut = { ...bed.range, end: Buffer.from('m'), epoch: { confVersion: 1, version: 2 } };
    bed.state.apply({ type: 'describeRange', descriptor: cut });
    expect(bed.care.splitRefusal(ask(bed, 'size', 77))).toBeUndefined();
  });
});
