import { describe, expect, test } from 'vitest';
import { NOW_MS, nodeInfo, rangeInfo, schedulingBed, upNodes } from '../../test/support/scheduling-bed.ts';
import type { NodeInfo, RangeInfo } from './cluster-model.ts';
import { LEGAL, type OperatorKind, type OperatorStatus, type Plan } from './operator.ts';
import { addSteps, planFor } from './plans.ts';
import { Scheduling } from './scheduling.ts';
import { DEFAULT_SETTINGS, type Settings } from './settings.ts';
import type { Instruction, Step } from './step.ts';

const ranges = [1, 2, 3, 4, 5, 6, 7, 8].map((rangeId) => rangeInfo(rangeId, { voters: [1, 2] }));

function controllerBed(settings: Partial<Settings> = {}, nodes: readonly NodeInfo[] = upNodes(6)) {
  const scheduling = schedulingBed({ nodes, ranges, settings: { replicas: 2, ...settings } });
  const { controller } = scheduling;
  let nowMs = NOW_MS;
  return {
    controller,
    scheduling,
    later: (ms: number) => {
      nowMs += ms;
      controller.tick(nowMs);
    },
    admit: (...plans: readonly Plan[]) => controller.admit(plans, nowMs),
    /** The range reports; what it is told. */
    report: (range: RangeInfo): Instruction | undefined => scheduling.rangeReported(range, nowMs),
    nowMs: () => nowMs,
  };
}

function plan(rangeId: number, steps: readonly Step[] = addSteps(3), kind: OperatorKind = 'balanceReplicas'): Plan {
  return planFor(rangeInfo(rangeId, { voters: [1, 2] }), { kind, steps, reason: `test of ${kind}` });
}

const transfer = (to: number): readonly Step[] => [{ type: 'transferLeader', nodeId: to }];
const refused = (pattern: RegExp) => ({ refused: expect.stringMatching(pattern) });
const admitted = { admitted: expect.anything() };

describe('an operator', () => {
  test('goes through its steps as the range reports them done', () => {
    const { admit, report, controller } = controllerBed();
    expect(admit(plan(1))).toEqual(admitted);
    const add = { type: 'addLearner', nodeId: 3, replicaId: 9_001 };
    expect(report(rangeInfo(1, { voters: [1, 2] }))).toEqual(add);
    expect(report(rangeInfo(1, { voters: [1, 2] }))).toEqual(add); // told again, with the same id
    const withLearner = (caughtUp: boolean) => {
      const progress = [{ replicaId: 9_001, caughtUp }];
      return asLearner(rangeInfo(1, { voters: [1, 2], learners: [3], confVersion: 2, progress }));
    };
    expect(report(withLearner(false))).toBeUndefined();
    expect(report(withLearner(true))).toEqual({ type: 'changeVoters', promote: [9_001], remove: [] });
    expect(report(rangeInfo(1, { voters: [1, 2, 3], confVersion: 3 }))).toBeUndefined();
    expect(controller.history()).toEqual([expect.objectContaining({ rangeId: 1, status: 'success', step: 2 })]);
    expect(controller.active()).toEqual([]);
  });

  test('draws an id for each replica that it adds', () => {
    const { admit, report } = controllerBed();
    admit(plan(1, [...addSteps(3).slice(0, 1), ...addSteps(4)]));
    expect(report(rangeInfo(1, { voters: [1, 2] }))).toMatchObject({ nodeId: 3, replicaId: 9_001 });
    const next = asLearner(rangeInfo(1, { voters: [1, 2], learners: [3], confVersion: 2 }));
    expect(report(next)).toMatchObject({ nodeId: 4, replicaId: 9_002 });
  });

  test('waits while no id is at hand', () => {
    const ids: number[] = [];
    const scheduling = new Scheduling({
      nextReplicaId: () => ids.shift(),
      settings: { ...DEFAULT_SETTINGS, replicas: 2 },
    });
    for (const node of upNodes(3)) scheduling.nodeReported(node);
    const range = rangeInfo(1, { voters: [1, 2] });
    scheduling.rangeReported(range, NOW_MS);
    scheduling.controller.admit([plan(1)], NOW_MS);
    expect(scheduling.rangeReported(range, NOW_MS)).toBeUndefined();
    ids.push(77);
    expect(scheduling.rangeReported(range, NOW_MS)).toEqual({ type: 'addLearner', nodeId: 3, replicaId: 77 });
  });

  test.each([
    {
      name: 'the members change by something else',
      range: { voters: [1, 2, 4], confVersion: 2 },
      outcome: /membership was changed/,
    },
    {
      name: 'another replica takes the place',
      range: { voters: [1, 2], learners: [3], confVersion: 2 },
      outcome: /another replica/,
    },
    { name: 'the range is split', range: { voters: [1, 2], version: 2 }, outcome: /split or merged/ },
  ])('is cancelled when $name (O2)', ({ range, outcome }) => {
    const { admit, report, controller } = controllerBed();
    admit(plan(1));
    report(rangeInfo(1, { voters: [1, 2] }));
    expect(report(rangeInfo(1, range))).toBeUndefined();
    expect(controller.history()).toEqual([
      expect.objectContaining({ status: 'cancelled', outcome: expect.stringMatching(outcome) }),
    ]);
  });

  test('sees a voter that goes as a learner first on its way out', () => {
    const { admit, report, controller } = controllerBed();
    admit(plan(1, [{ type: 'changeVoters', promote: [], remove: [2] }], 'admin'));
    report(rangeInfo(1, { voters: [1, 2] }));
    const leaving = rangeInfo(1, { voters: [1], learners: [2], confVersion: 2 });
    expect(report(leaving)).toEqual({ type: 'changeVoters', promote: [], remove: [102] });
    report(rangeInfo(1, { voters: [1], confVersion: 3 }));
    expect(controller.history()).toEqual([expect.objectContaining({ status: 'success' })]);
  });

  test('is cancelled when the node that it needs goes down', () => {
    const { admit, report, controller, scheduling } = controllerBed();
    admit(plan(1));
    scheduling.nodeReported(nodeInfo(3, { liveness: 'down' }));
    expect(report(rangeInfo(1, { voters: [1, 2] }))).toBeUndefined();
    expect(controller.history()).toEqual([expect.objectContaining({ status: 'cancelled', outcome: 'node 3 is down' })]);
  });

  test('times out when the range does not report, and when a step takes too long', () => {
    const { admit, report, controller, later } = controllerBed();
    admit(plan(1));
    admit(plan(2, addSteps(4)));
    later(55_000);
    report(rangeInfo(1, { voters: [1, 2] }));
    later(6_000);
    later(55_000);
    expect(controller.history().map(({ rangeId, status, outcome }) => [rangeId, status, outcome])).toEqual([
      [1, 'timedOut', expect.stringContaining('took longer than 60 s')],
      [2, 'timedOut', 'the range has not reported'],
    ]);
  });

  test('is not given up while it is only waited for, however often that is reported; a time-out tells what it waited for', () => {
    const { admit, report, controller, later } = controllerBed();
    admit(plan(1, [{ type: 'changeVoters', promote: [], remove: [2] }], 'admin'));
    const range = rangeInfo(1, { voters: [1, 2] });
    const waitsFor = 'the last attempt failed, and is repeated: the disk is slow';
    for (let i = 0; i < 20; i++) {
      report(range);
      controller.noted(1, waitsFor);
    }
    expect(controller.active()).toMatchObject([{ status: 'started', outcome: waitsFor }]);
    later(121_000);
    expect(controller.history()).toMatchObject([
      {
        status: 'timedOut',
        outcome: expect.stringMatching(/^took longer than 120 s: .* \(at the end: the last attempt/),
      },
    ]);
  });

  test('gives a large range the time that its copy takes', () => {
    const { admit, report, controller, later } = controllerBed();
    admit(plan(1));
    report(rangeInfo(1, { voters: [1, 2] }));
    const bytes = 200 * DEFAULT_SETTINGS.snapshotBytesPerS;
    const copying = asLearner(rangeInfo(1, { voters: [1, 2], learners: [3], confVersion: 2, behind: [3], bytes }));
    report(copying);
    later(319_000);
    report(copying);
    expect(controller.active()).toHaveLength(1);
    later(2_000);
    expect(controller.history()).toEqual([expect.objectContaining({ status: 'timedOut' })]);
  });

  test('that failed makes its node be avoided for the range, for a while', () => {
    const { admit, report, controller, scheduling, later, nowMs } = controllerBed();
    admit(plan(1));
    report(rangeInfo(1, { voters: [1, 2] }));
    controller.failed(1, 'the disk is full', nowMs());
    expect(controller.history()).toEqual([expect.objectContaining({ status: 'failed', outcome: 'the disk is full' })]);
    expect(scheduling.view(nowMs()).isAvoided(1, 3)).toBe(true);
    expect(scheduling.view(nowMs()).isAvoided(2, 3)).toBe(false);
    later(DEFAULT_SETTINGS.retryAfterMs);
    expect(scheduling.view(nowMs()).isAvoided(1, 3)).toBe(false);
  });

  test('of a merge has succeeded when the source is gone and the range has grown', () => {
    const nodes = upNodes(2);
    const pair = [rangeInfo(1, { voters: [1, 2], end: 'm' }), rangeInfo(2, { voters: [1, 2], start: 'm' })];
    const scheduling = schedulingBed({ nodes, ranges: pair, settings: { replicas: 2 } });
    const merge: Plan = { ...plan(1, [{ type: 'merge', source: 2, version: 1, bytesMax: 0 }], 'admin'), partner: 2 };
    expect(scheduling.request(merge, NOW_MS)).toEqual(admitted);
    expect(scheduling.request(plan(2, transfer(2), 'admin'), NOW_MS)).toEqual(
      refused(/operator 1 is running for range 2/),
    );
    const [first, second] = pair;
    if (first === undefined) throw new Error('there is a pair');
    expect(scheduling.rangeReported(first, NOW_MS)).toEqual({ type: 'merge', source: second?.descriptor, bytesMax: 0 });
    scheduling.rangeRemoved(2);
    scheduling.rangeReported(rangeInfo(1, { voters: [1, 2], version: 2 }), NOW_MS);
    expect(scheduling.controller.history()).toEqual([expect.objectContaining({ status: 'success' })]);
    expect(scheduling.controller.operatorOf(2)).toBeUndefined();
  });
});

describe('admission', () => {
  test('takes one operator per range (K1)', () => {
    const { admit } = controllerBed();
    admit(plan(1));
    expect(admit(plan(1))).toEqual(refused(/operator 1 is running for range 1/));
    expect(admit(plan(2), plan(2))).toEqual(refused(/two ways at once/));
  });

  test('ends an operator for a more urgent one, and only for that', () => {
    const { admit, controller } = controllerBed();
    admit(plan(1, addSteps(3), 'evacuate'));
    expect(admit(plan(1, addSteps(4), 'balanceReplicas'))).toEqual(refused(/is running/));
    expect(admit(plan(1, addSteps(4), 'repair'))).toEqual(admitted);
    expect(controller.history()).toEqual([expect.objectContaining({ kind: 'evacuate', status: 'replaced' })]);
    expect(controller.active()).toEqual([expect.objectContaining({ kind: 'repair' })]);
  });

  test('takes plans that belong together, or none of them (K2)', () => {
    const { admit, controller } = controllerBed();
    admit(plan(2));
    expect(admit(plan(1), plan(2))).toEqual(refused(/range 2/));
    expect(controller.active()).toHaveLength(1);
    expect(admit(plan(1), plan(3))).toEqual(admitted);
  });

  test('lets those that belong together change voters only when all have copied (K2)', () => {
    const { admit, report } = controllerBed();
    admit(plan(1, addSteps(3)), plan(2, addSteps(4)));
    for (const rangeId of [1, 2]) report(rangeInfo(rangeId, { voters: [1, 2] }));
    const first = withLearner(1, 3, 9_001);
    expect(report(first)).toBeUndefined();
    expect(report(withLearner(2, 4, 9_002))).toEqual({ type: 'changeVoters', promote: [9_002], remove: [] });
    expect(report(first)).toEqual({ type: 'changeVoters', promote: [9_001], remove: [] });
  });

  test('ends those that belong together when one of them fails before (K2)', () => {
    const { admit, report, controller, nowMs } = controllerBed();
    admit(plan(1, addSteps(3)), plan(2, addSteps(4)));
    for (const rangeId of [1, 2]) report(rangeInfo(rangeId, { voters: [1, 2] }));
    report(withLearner(1, 3, 9_001));
    controller.failed(2, 'no space', nowMs());
    expect(controller.history().map(({ rangeId, status }) => [rangeId, status])).toEqual([
      [1, 'cancelled'],
      [2, 'failed'],
    ]);
    expect(controller.influenceSum.size).toBe(0);
  });

  test('does not wait for one that had nothing to do (K2)', () => {
    const { admit, report } = controllerBed();
    admit(plan(1, transfer(2), 'balanceLeaders'), plan(2, transfer(2), 'balanceLeaders'));
    expect(report(rangeInfo(1, { voters: [1, 2] }))).toBeUndefined();
    report(rangeInfo(2, { voters: [1, 2], leader: 2, term: 2 }));
    expect(report(rangeInfo(1, { voters: [1, 2] }))).toEqual({ type: 'transferLeader', replicaId: 102 });
  });

  test('refuses what was planned for an earlier state of the range', () => {
    const { admit, report } = controllerBed();
    report(rangeInfo(1, { voters: [1, 2], confVersion: 2 }));
    expect(admit(plan(1))).toEqual(refused(/has changed since/));
    expect(admit(plan(99))).toEqual(refused(/unknown range 99/));
  });

  test('keeps to the limits per node, and leaves balancing less than repair', () => {
    const { admit } = controllerBed({ receivesPerNodeMax: 2, sendsPerNodeMax: 10 });
    expect(admit(plan(1))).toEqual(admitted);
    expect(admit(plan(2))).toEqual(refused(/node 3 is already receiving 1 replicas/));
    expect(admit(plan(2, addSteps(4)))).toEqual(admitted);
    expect(admit(plan(3, addSteps(3), 'repair'))).toEqual(admitted);
    expect(admit(plan(4, addSteps(3), 'repair'))).toEqual(refused(/node 3 is already receiving 2 replicas/));
  });

  test('counts what a leader has to send', () => {
    const { admit } = controllerBed({ sendsPerNodeMax: 3 });
    expect(admit(plan(1, addSteps(3)), plan(2, addSteps(4)))).toEqual(admitted);
    expect(admit(plan(3, addSteps(5)))).toEqual(refused(/node 1 is already sending 2 replicas/));
  });

  test('keeps to the limits of transfers, of a kind, and of all', () => {
    const { admit } = controllerBed({ transfersPerNodeMax: 2, balanceOperatorsMax: 3, operatorsMax: 4 });
    expect(admit(plan(1, transfer(2), 'balanceLeaders'), plan(2, transfer(2), 'balanceLeaders'))).toEqual(admitted);
    expect(admit(plan(3, transfer(2), 'balanceLeaders'))).toEqual(refused(/node 2 is already taking over 2/));
    expect(admit(plan(3, addSteps(3)), plan(4, addSteps(4)))).toEqual(admitted);
    expect(admit(plan(5, addSteps(5), 'repair'))).toEqual(refused(/operators-max \(4\)/));
  });

  test('keeps to the limit of balancing', () => {
    const { admit } = controllerBed({ balanceOperatorsMax: 1 });
    expect(admit(plan(1))).toEqual(admitted);
    expect(admit(plan(2, addSteps(4)))).toEqual(refused(/balance-operators-max \(1\) is reached for balanceReplicas/));
    expect(admit(plan(2, addSteps(4), 'repair'))).toEqual(admitted);
  });

  test('lets balancing rest a range that was moved, and nothing else', () => {
    const { admit, controller, later, nowMs } = controllerBed();
    admit(plan(1));
    expect(controller.cancel(1, 'by hand', nowMs())).toBe(true);
    expect(controller.cancel(1, 'by hand', nowMs())).toBe(false);
    expect(admit(plan(1))).toEqual(refused(/left alone for another 120 s/));
    expect(admit(plan(1, addSteps(3), 'repair'))).toEqual(admitted);
    controller.cancel(2, 'by hand', nowMs());
    later(120_000);
    expect(admit(plan(1))).toEqual(admitted);
  });
});

test('what is under way counts as if it were done, once and no longer', () => {
  const { admit, report, controller } = controllerBed();
  const before = controller.expected(3);
  admit(plan(1));
  expect(controller.expected(3).replicas).toBe(before.replicas + 1);
  report(rangeInfo(1, { voters: [1, 2] }));
  report(asLearner(rangeInfo(1, { voters: [1, 2], learners: [3], confVersion: 2 })));
  expect(controller.expected(3).replicas).toBe(before.replicas + 1);
  report(rangeInfo(1, { voters: [1, 2, 3], confVersion: 3 }));
  expect(controller.expected(3).replicas).toBe(before.replicas + 1);
  expect(controller.influenceSum.size).toBe(0);
});

test('the history is bounded, and newest first (K4)', () => {
  const { admit, controller, nowMs } = controllerBed({ moveCooldownMs: 0 });
  for (let i = 1; i <= 2_500; i++) {
    admit(plan(1));
    controller.cancel(i, 'again', nowMs());
  }
  expect(controller.history()).toHaveLength(1_000);
  expect(controller.history(2).map(({ operatorId }) => operatorId)).toEqual([2_500, 2_499]);
});

test('every status is reached from `created`, and final ones lead nowhere (O1)', () => {
  const reached = new Set<OperatorStatus>(['created']);
  for (const status of reached) for (const next of LEGAL[status]) reached.add(next);
  expect([...reached].sort()).toEqual(Object.keys(LEGAL).sort());
  for (const status of ['success', 'failed', 'cancelled', 'timedOut', 'replaced'] as const)
    expect(LEGAL[status]).toEqual([]);
});

function withLearner(rangeId: number, nodeId: number, replicaId: number): RangeInfo {
  const range = rangeInfo(rangeId, { voters: [1, 2], learners: [nodeId], confVersion: 2 });
  const replicas = range.descriptor.replicas.map((replica) =>
    replica.type === 'learner' ? { ...replica, replicaId } : replica,
  );
  return { ...range, descriptor: { ...range.descriptor, replicas }, progress: [{ replicaId, caughtUp: true }] };
}

/** The learner on node 3 has the id that was drawn for it. */
function asLearner(range: RangeInfo): RangeInfo {
  const renamed = (replicaId: number): number => (replicaId === 103 ? 9_001 : replicaId);
  const replicas = range.descriptor.replicas.map((replica) => ({ ...replica, replicaId: renamed(replica.replicaId) }));
  const progress = range.progress.map((one) => ({ ...one, replicaId: renamed(one.replicaId) }));
  return { ...range, descriptor: { ...range.descriptor, replicas }, progress };
}
