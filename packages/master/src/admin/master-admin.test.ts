import { ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import {
  createLocalChannel,
  createRpcRegistry,
  type HealthCondition,
  healthCondition,
  type LeaderReport,
  type LoadMeasure,
  type Method,
  masterCheck,
  masterFinalizeUpgrade,
  masterHotRanges,
  masterNodes,
  masterNoteRestore,
  masterRanges,
  masterSetSetting,
  masterSettings,
  type NodeDuty,
  type NodeState,
  type RangeDescriptor,
  type RangeReport,
  type SettingInfo,
  type UpgradeStatus,
} from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { CONF, descriptor } from '../../test/support/descriptor.ts';
import type { MasterCommand } from '../metadata/master-commands.ts';
import { MasterState } from '../metadata/master-state.ts';
import { ClusterHealth } from './cluster-health.ts';
import { MasterAdmin, RESTORE_NOTE } from './master-admin.ts';
import type { Knowledge, LastHeard } from './overview.ts';
import { SettingsSchema } from './settings.ts';

const NODES = [1, 2, 3, 4].map((nodeId) => descriptor(nodeId));

function range(rangeId: number, start: string, end: string, more: Partial<RangeDescriptor> = {}): RangeDescriptor {
  const replicas = [1, 2, 3].map((nodeId) => ({ replicaId: 10 * rangeId + nodeId, nodeId, type: 'voter' as const }));
  const epoch = { confVersion: 1, version: 1 };
  const [from, to] = [Buffer.from(start), Buffer.from(end)];
  return { rangeId, start: from, end: to, epoch, replicas, revisionSource: 'range', ...more };
}

const LEAD: LeaderReport = {
  ...{ keys: 5, logEntries: 9, joint: false, changePending: false },
  ...{ readsPerS: 1, readBytesPerS: 2, writesPerS: 3, writeBytesPerS: 4, peers: [], sizeRemark: '' },
};

const SPACE = { capacityBytes: 100, availableBytes: 40 };

/** As of the first membership. */
const ORPHAN: RangeReport = {
  ...{ rangeId: 2, replicaId: 99, epoch: { confVersion: 1, version: 1 }, term: 4, applied: 7, bytes: 1_000 },
  ...{ silent: true, lead: undefined },
};

/** What the admin half of a master has around it; ranges lead on node 1 unless a test says otherwise. */
class AdminBed {
  readonly clock = new ManualClock();
  readonly state = new MasterState(CONF);
  readonly proposed: { command: MasterCommand; done: (error: ServiceError | undefined) => void }[] = [];
  readonly states = new Map<number, NodeState>();
  readonly duties = new Map<number, NodeDuty>();
  ranges: readonly RangeDescriptor[];
  silent: readonly number[] = [];
  leaderOf: (rangeId: number) => number = () => 1;
  lead = LEAD;
  readonly leads = new Map<number, LeaderReport>();
  /** What nodes report beside the replicas that their ranges have. */
  readonly orphans = new Map<number, RangeReport>();
  readonly merged = new Map<number, number>();
  found: readonly HealthCondition[] = [];
  /** What nodes find wrong with themselves. */
  readonly said = new Map<number, readonly HealthCondition[]>();
  upgrade: UpgradeStatus = { inForce: 1, newest: 2, nodes: [], blockers: [] };
  readonly refusals = new Map<number, ServiceError>();
  leading = true;
  /** It has not waited yet for those that are silent. */
  isNew = false;
  readonly #channel;

  constructor(ranges: readonly RangeDescriptor[] = [range(2, '', '')]) {
    this.ranges = ranges;
    const registry = createRpcRegistry();
    const schema = new SettingsSchema({ replicas: 3 });
    const { clock } = this;
    const knowledge = (): Knowledge => this.#knowledge();
    new MasterAdmin({
      nodeId: 1,
      clusterId: 'c',
      settings: () => schema,
      state: this.state,
      confirm: (done) => done(this.leading ? undefined : new ServiceError('NOT_LEADER', 'not here')),
      leadingMs: () => 5_000,
      knowledge,
      health: new ClusterHealth({
        ...{ clock, knowledge, replicas: () => 3, firstReplicas: 3 },
        unheard: (nodeId) => this.isNew && this.silent.includes(nodeId),
        more: () => this.found,
      }),
      upgrade: { status: () => this.upgrade, refusal: (version) => this.refusals.get(version) },
      propose: (command, done) => this.proposed.push({ command, done }),
    }).register(registry);
    this.#channel = createLocalChannel({ registry, clock });
  }

  #knowledge(): Knowledge {
    return {
      nodes: NODES,
      ranges: this.ranges,
      heard: this.#heard(),
      wallMs: 0,
      isRestoring: this.state.settings.texts.has(RESTORE_NOTE),
      isMaster: () => true,
      mergedInto: (rangeId) => this.merged.get(rangeId),
      dutyOf: (nodeId) => ({ nodeId, duty: this.duties.get(nodeId) ?? 'serving', untilMs: 0 }),
      stateOf: (nodeId) => this.states.get(nodeId) ?? (this.silent.includes(nodeId) ? 'suspect' : 'up'),
    };
  }

  #heard(): Map<number, LastHeard> {
    const heard = new Map<number, LastHeard>();
    for (const { nodeId, incarnation } of NODES) {
      if (this.silent.includes(nodeId)) continue;
      heard.set(nodeId, {
        silentMs: 100 * nodeId,
        heartbeat: {
          nodeId,
          incarnation,
          space: SPACE,
          labels: {},
          hasMaster: true,
          ranges: this.#reports(nodeId),
          results: [],
          conditions: this.said.get(nodeId) ?? [],
          authRevision: 0,
        },
      });
    }
    return heard;
  }

  #reports(nodeId: number): readonly RangeReport[] {
    const orphan = this.orphans.get(nodeId);
    const reports = this.ranges.flatMap(({ rangeId, replicas, epoch }) => {
      const own = replicas.find((replica) => replica.nodeId === nodeId);
      if (own === undefined) return [];
      const lead = this.leaderOf(rangeId) === nodeId ? (this.leads.get(rangeId) ?? this.lead) : undefined;
      return [{ rangeId, replicaId: own.replicaId, epoch, term: 4, applied: 7, bytes: 1_000, silent: false, lead }];
    });
    return orphan === undefined ? reports : [...reports, orphan];
  }

  call<Request, Reply>(method: Method<Request, Reply>, request: Request): ServiceError | Reply | undefined {
    let answer: ServiceError | Reply | undefined;
    this.#channel.call(method, request, { timeoutMs: 1_000 }, (error, reply) => {
      answer = error ?? reply;
    });
    return answer;
  }

  /** Applies what was proposed, as the log would. */
  commit(): void {
    for (const { command, done } of this.proposed.splice(0)) {
      try {
        this.state.apply(command);
        done(undefined);
      } catch (error) {
        done(error as ServiceError);
      }
    }
  }

  settings(): readonly SettingInfo[] {
    const settings = this.call(masterSettings, undefined);
    if (settings === undefined || settings instanceof ServiceError) throw new Error('no settings');
    return settings;
  }

  setting(name: string): string | undefined {
    return this.settings().find((setting) => setting.name === name)?.value;
  }

  conditions(): readonly string[] {
    const report = this.call(masterCheck, undefined);
    if (report === undefined || report instanceof ServiceError) throw new Error('no report');
    return report.conditions.map(({ name, severity, rangeId, nodeId }) => `${severity} ${name} ${rangeId} ${nodeId}`);
  }
}

const page = (from = '', limit = 100, rangeId = 0) => ({ from: Buffer.from(from), limit, rangeId });

describe('the master tells operators', () => {
  test('of its nodes: what they hold, and since when they are silent', () => {
    const bed = new AdminBed([range(2, '', 'm'), range(3, 'm', '')]);
    bed.silent = [3];
    expect(bed.call(masterNodes, undefined)).toMatchObject({
      masterLeader: 1,
      leadingMs: 5_000,
      nodes: [
        { descriptor: { nodeId: 1 }, state: 'up', silentMs: 100, replicas: 2, leaders: 2, bytes: 2_000 },
        { state: 'up', silentMs: 200, replicas: 2, leaders: 0 },
        { state: 'suspect', silentMs: -1, replicas: 2, leaders: 0, bytes: 0 },
        { state: 'up', silentMs: 400, replicas: 0, leaders: 0, bytes: 0 },
      ],
    });
  });

  test('of ranges, page by page in the order of their keys', () => {
    const bed = new AdminBed([range(7, 'm', 't'), range(2, '', 'c'), range(9, 't', ''), range(5, 'c', 'm')]);
    const ids = (from: string, limit: number) => {
      const answer = bed.call(masterRanges, page(from, limit));
      if (answer === undefined || answer instanceof ServiceError) throw new Error('no answer');
      return [answer.ranges.map((each) => each.descriptor.rangeId), answer.more];
    };
    expect(ids('', 3)).toEqual([[2, 5, 7], true]);
    expect(ids('t', 3)).toEqual([[9], false]);
    expect(ids('c', 1)).toEqual([[5], true]);
    expect(ids('lz', 1)).toEqual([[5], true]);
  });

  test('of one range: who leads it in the newest term, and what each replica reported', () => {
    const bed = new AdminBed();
    expect(bed.call(masterRanges, page('', 1, 2))).toMatchObject({
      ranges: [{ leaderNode: 1, reports: [{ nodeId: 1, silentMs: 100 }, { nodeId: 2 }, { nodeId: 3 }] }],
      more: false,
    });
    const unknown = bed.call(masterRanges, page('', 1, 8));
    expect(unknown).toMatchObject({ code: 'RANGE_NOT_FOUND', message: 'unknown range 8; the ranges are 2' });
  });

  test('of the hottest ranges first, by the measure that is asked for', () => {
    const bed = new AdminBed([range(2, '', 'c'), range(3, 'c', 'm'), range(4, 'm', 't'), range(5, 't', '')]);
    bed.leaderOf = (rangeId) => (rangeId === 5 ? 0 : 1);
    bed.leads.set(2, { ...LEAD, readsPerS: 50, writesPerS: 1 });
    bed.leads.set(4, { ...LEAD, readsPerS: 1, writesPerS: 40, writeBytesPerS: 9 });
    const ids = (by: LoadMeasure, limit: number) => {
      const answer = bed.call(masterHotRanges, { by, limit });
      if (answer === undefined || answer instanceof ServiceError) throw new Error('no answer');
      return [answer.ranges.map((each) => each.descriptor.rangeId), answer.more];
    };
    expect(ids('requests', 9)).toEqual([[2, 4, 3], false]);
    expect(ids('writes', 2)).toEqual([[4, 3], true]);
    expect(ids('writeBytes', 1)).toEqual([[4], true]);
    expect(ids('readBytes', 9)).toEqual([[2, 3, 4], false]);
  });

  test('nothing when it does not lead', () => {
    const bed = new AdminBed();
    bed.leading = false;
    for (const answer of [
      bed.call(masterNodes, undefined),
      bed.call(masterCheck, undefined),
      bed.call(masterSettings, undefined),
      bed.call(masterSetSetting, { name: 'down-after', value: '5m' }),
      bed.call(masterRanges, page()),
    ]) {
      expect(answer).toMatchObject({ code: 'NOT_LEADER' });
    }
    expect(bed.proposed).toEqual([]);
  });
});

describe('the check', () => {
  const learner = { replicaId: 24, nodeId: 3, type: 'learner' as const };
  const two = range(2, '', '').replicas.slice(0, 2);
  const cases: readonly { name: string; given: (bed: AdminBed) => void; expect: readonly string[] }[] = [
    { name: 'nothing wrong', given: () => {}, expect: [] },
    {
      name: 'no range at all, before the first',
      given: (bed) => {
        bed.ranges = [];
      },
      expect: ['critical noRanges 0 0'],
    },
    {
      name: 'holes at the start, between and at the end',
      given: (bed) => {
        bed.ranges = [range(2, 'b', 'c'), range(3, 'd', 'e')];
      },
      expect: ['critical hole 2 0', 'critical hole 3 0', 'critical hole 3 0'],
    },
    {
      name: 'a range within another, which goes on behind it',
      given: (bed) => {
        bed.ranges = [range(2, '', ''), range(3, 'd', 'e')];
      },
      expect: ['critical overlap 3 0'],
    },
    {
      name: 'ranges that overlap at their border',
      given: (bed) => {
        bed.ranges = [range(2, '', 'e'), range(3, 'd', '')];
      },
      expect: ['critical overlap 3 0'],
    },
    {
      name: 'a range without leader',
      given: (bed) => {
        bed.leaderOf = () => 0;
      },
      expect: ['critical noLeader 2 0'],
    },
    {
      name: 'a silent node',
      given: (bed) => {
        bed.silent = [3];
      },
      expect: ['warning silentNode 0 3', 'warning silentReplica 2 3'],
    },
    {
      name: 'a majority that is silent, the leader among them',
      given: (bed) => {
        bed.silent = [1, 2];
      },
      expect: [
        'critical quorumLost 2 0',
        'warning silentNode 0 1',
        'warning silentNode 0 2',
        'warning silentReplica 2 1',
        'warning silentReplica 2 2',
      ],
    },
    {
      name: 'too few voters, and a learner that stays',
      given: (bed) => {
        bed.ranges = [range(2, '', '', { replicas: [...two, learner] })];
      },
      expect: ['warning underReplicated 2 0', 'warning learner 2 3'],
    },
    {
      name: 'a change of membership that is not over',
      given: (bed) => {
        bed.lead = { ...LEAD, joint: true };
      },
      expect: ['warning joint 2 0'],
    },
    {
      name: 'a replica that its range has gone on without, and one of a range that was merged away',
      given: (bed) => {
        bed.ranges = [range(2, '', '', { epoch: { confVersion: 4, version: 1 } })];
        bed.orphans.set(1, { ...ORPHAN, rangeId: 8, replicaId: 81 });
        bed.orphans.set(2, { ...ORPHAN, replicaId: 29 });
        bed.merged.set(8, 2);
      },
      expect: ['warning orphan 8 1', 'warning orphan 2 2'],
    },
    {
      name: 'nothing wrong in replicas that have not asked yet whether they are needed',
      given: (bed) => {
        bed.ranges = [range(2, '', '', { epoch: { confVersion: 4, version: 1 } })];
        bed.orphans.set(2, { ...ORPHAN, replicaId: 29, silent: false });
      },
      expect: [],
    },
    {
      name: 'nothing wrong in replicas that the master may only not know yet',
      given: (bed) => {
        bed.orphans.set(1, { ...ORPHAN, rangeId: 8, replicaId: 81 });
        bed.orphans.set(2, { ...ORPHAN, replicaId: 29 });
      },
      expect: [],
    },
    {
      name: 'nothing wrong in the silence of a node that was removed, nor in what it has left',
      given: (bed) => {
        bed.ranges = [range(2, '', '', { epoch: { confVersion: 4, version: 1 } })];
        bed.states.set(4, 'down');
        bed.duties.set(4, 'removed');
        bed.orphans.set(4, { ...ORPHAN, replicaId: 29 });
      },
      expect: [],
    },
    {
      name: 'what the scheduling finds',
      given: (bed) => {
        bed.found = [healthCondition('stuck', { rangeId: 2 }, 'it cannot be mended')];
      },
      expect: ['warning stuck 2 0'],
    },
    {
      name: 'a node that reports but was told to go',
      given: (bed) => {
        bed.duties.set(3, 'draining');
      },
      expect: ['info draining 0 3'],
    },
    {
      name: 'what a node that is heard says of itself, and of nobody else',
      given: (bed) => {
        const full = (nodeId: number) => healthCondition('diskReserve', { nodeId }, 'no room');
        bed.said.set(2, [full(2), full(1)]);
        bed.said.set(3, [full(3)]);
        bed.states.set(3, 'down');
      },
      expect: ['critical diskReserve 0 2', 'warning silentNode 0 3', 'warning silentReplica 2 3'],
    },
    {
      name: 'no leader in a node that said that it leads and is not heard any more',
      given: (bed) => {
        bed.states.set(1, 'suspect');
      },
      expect: ['critical noLeader 2 0', 'warning silentNode 0 1', 'warning silentReplica 2 1'],
    },
    {
      name: 'nothing but its own newness, where it has not heard from nodes because it is new',
      given: (bed) => {
        bed.isNew = true;
        bed.silent = [1, 2];
      },
      expect: ['info notInformed 0 0'],
    },
    {
      name: 'a range that its leader finds too large',
      given: (bed) => {
        bed.lead = { ...LEAD, sizeRemark: 'writes are refused for now' };
      },
      expect: ['warning rangeTooLarge 2 0'],
    },
  ];
  test.each(cases)('finds $name', ({ given, expect: expected }) => {
    const bed = new AdminBed();
    given(bed);
    bed.conditions();
    bed.clock.advance(3_000);
    expect(bed.conditions()).toEqual(expected);
  });

  test('finds a range without leader only when an election had the time to end (CK2)', () => {
    const bed = new AdminBed();
    const during = (ms: number) => {
      bed.clock.advance(ms);
      return bed.conditions();
    };
    bed.leaderOf = () => 0;
    expect([during(0), during(2_999), during(1)]).toEqual([[], [], ['critical noLeader 2 0']]);
    bed.leaderOf = () => 1;
    expect(during(0)).toEqual([]);
    bed.leaderOf = () => 0;
    expect(during(5_000)).toEqual([]);
  });

  test('finds a follower behind only when it has answered and lagged for a minute (CK4)', () => {
    const bed = new AdminBed();
    const [own, other] = bed.ranges[0]?.replicas.slice(0, 2).map(({ replicaId }) => replicaId) ?? [];
    expect(own).toBeDefined();
    const peer = { replicaId: other ?? 0, state: 'snapshot', match: 1, lagEntries: 9_000, lagBytes: 1 } as const;
    const during = (ms: number, silentMs = 0, caughtUp = false) => {
      bed.lead = { ...LEAD, peers: [{ ...peer, silentMs, caughtUp }] };
      bed.clock.advance(ms);
      return bed.conditions();
    };
    const behind = ['warning replicaBehind 2 2'];
    expect([during(0), during(59_999), during(1)]).toEqual([[], [], behind]);
    expect(during(1, 0, true)).toEqual([]);
    expect(during(1)).toEqual([]);
    expect(during(60_000)).toEqual(behind);
    expect(during(60_000, 500)).toEqual([]); // It does not answer: that is another condition.
  });
});

test('a restore is a condition from its beginning to its end, and no setting (MA2)', () => {
  const bed = new AdminBed();
  const note = (isUnderWay: boolean) => {
    bed.call(masterNoteRestore, { isUnderWay });
    bed.commit();
    return bed.conditions();
  };
  expect([note(true), note(true), note(false)]).toEqual([
    ['warning restoreUnderWay 0 0'],
    ['warning restoreUnderWay 0 0'],
    [],
  ]);
  note(true);
  expect(bed.settings().map(({ name }) => name)).not.toContain(RESTORE_NOTE);
  expect(bed.call(masterSetSetting, { name: RESTORE_NOTE, value: '' })).toMatchObject({ code: 'INVALID_ARGUMENT' });
  expect(bed.conditions()).toEqual(['warning restoreUnderWay 0 0']);
});

describe('changing a setting', () => {
  test('is answered once it is applied, with what is in force then', () => {
    const bed = new AdminBed();
    expect(bed.call(masterSetSetting, { name: 'down-after', value: '300s' })).toBeUndefined();
    bed.commit();
    expect(bed.setting('down-after')).toBe('5m');
  });

  test('writes nothing when it is so already, or not right', () => {
    const bed = new AdminBed();
    expect(bed.call(masterSetSetting, { name: 'down-after', value: '' })).toEqual(bed.settings());
    expect(bed.call(masterSetSetting, { name: 'down-after', value: '1s' })).toMatchObject({ code: 'INVALID_ARGUMENT' });
    expect(bed.proposed).toEqual([]);
  });

  test('back to what it is while a change of it is under way is not told as done (MA1)', () => {
    const bed = new AdminBed();
    bed.call(masterSetSetting, { name: 'down-after', value: '5m' });
    expect(bed.call(masterSetSetting, { name: 'down-after', value: '10m' })).toBeUndefined();
    bed.commit();
    expect(bed.setting('down-after')).toBe('5m');
    bed.call(masterSetSetting, { name: 'down-after', value: '5m' });
    expect(bed.proposed).toEqual([]);
  });

  test('by two at once never makes what neither may (MA1)', () => {
    const bed = new AdminBed();
    bed.call(masterSetSetting, { name: 'down-after', value: '1m' });
    bed.call(masterSetSetting, { name: 'suspect-after', value: '5m' });
    const [first, second] = bed.proposed;
    const errors: (string | undefined)[] = [];
    for (const each of [first, second]) {
      const done = each?.done;
      if (each !== undefined) {
        each.done = (error) => {
          errors.push(error?.code);
          done?.(error);
        };
      }
    }
    bed.commit();
    expect(errors).toEqual([undefined, 'UNAVAILABLE']);
    expect([bed.setting('suspect-after'), bed.setting('down-after')]).toEqual(['3s', '1m']);
    const again = bed.call(masterSetSetting, { name: 'suspect-after', value: '5m' });
    expect(again).toMatchObject({ code: 'INVALID_ARGUMENT' });
  });
});

describe('an upgrade', () => {
  test('is finalized to the newest version, or a named one, and answered when that is replicated', () => {
    const bed = new AdminBed();
    expect(bed.call(masterFinalizeUpgrade, { version: 0 })).toBe(undefined);
    expect(bed.call(masterFinalizeUpgrade, { version: 7 })).toBe(undefined);
    const commands = bed.proposed.map(({ command }) => command);
    expect(commands).toEqual([
      { type: 'finalizeUpgrade', version: 2 },
      { type: 'finalizeUpgrade', version: 7 },
    ]);
  });

  test('that has ended proposes nothing', () => {
    const bed = new AdminBed();
    bed.upgrade = { ...bed.upgrade, inForce: 2 };
    expect(bed.call(masterFinalizeUpgrade, { version: 0 })).toEqual(bed.upgrade);
    expect(bed.proposed).toEqual([]);
  });

  test('that is not possible is refused before it is proposed', () => {
    const bed = new AdminBed();
    bed.refusals.set(2, new ServiceError('INVALID_ARGUMENT', 'node 2 is down'));
    expect(bed.call(masterFinalizeUpgrade, { version: 0 })).toMatchObject({ message: 'node 2 is down' });
    expect(bed.proposed).toEqual([]);
  });
});
