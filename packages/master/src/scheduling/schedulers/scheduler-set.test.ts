import { describe, expect, test } from 'vitest';
import { NOW_MS, rangeInfo, schedulingBed, upNodes } from '../../../test/support/scheduling-bed.ts';
import { whyNode, whyRange } from '../why.ts';

/** Node 1 leads everything. */
function skewed(rangeCount = 6) {
  const ranges = Array.from({ length: rangeCount }, (_, i) => rangeInfo(i + 1, { voters: [1, 2, 3] }));
  return schedulingBed({ nodes: upNodes(3), ranges });
}

const NAMES = ['scatter', 'merge', 'space', 'replica-count', 'bytes', 'replica-load', 'leader-count', 'leader-load'];

describe('schedulers', () => {
  test('are listed in the order in which they run, with what they said', () => {
    const { schedulers, tick } = bind(skewed());
    tick();
    const listed = schedulers.list(NOW_MS);
    expect(listed.map(({ name }) => name)).toEqual(NAMES);
    expect(Object.fromEntries(listed.map(({ name, last }) => [name, last]))).toEqual({
      scatter: 'no scatter is requested',
      merge: 'no adjacent ranges are small and quiet',
      space: 'every node has at least 10 % of its space free',
      'replica-count': 'the nodes have 6 to 6 replicas, which is within the tolerance',
      bytes: 'the nodes have 6000000 to 6000000 bytes, which is within the tolerance',
      'replica-load': 'the nodes have 0 to 0 requests per second, which is within the tolerance',
      'leader-count': 'the nodes have 2 to 2 leaders, which is within the tolerance',
      'leader-load': 'waiting while leader-count finds work',
    });
  });

  test('do nothing while they are paused, go on when the pause is over, or when they are resumed', () => {
    const { schedulers, controller, tick } = bind(skewed());
    schedulers.pause('leader-count', NOW_MS + 10_000);
    tick(NOW_MS + 9_999);
    expect(controller.active()).toEqual([]);
    expect(schedulers.list(NOW_MS + 9_999).find(({ name }) => name === 'leader-count')).toMatchObject({
      pausedUntilMs: NOW_MS + 10_000,
      last: 'paused',
    });
    expect(schedulers.list(NOW_MS + 10_000).map(({ last }) => last)).not.toContain('paused');
    tick(NOW_MS + 10_000);
    expect(controller.active()).toHaveLength(4);
    const other = bind(skewed());
    other.schedulers.pause('leader-count', Number.POSITIVE_INFINITY);
    other.schedulers.resume('leader-count');
    other.tick();
    expect(other.controller.active()).toHaveLength(4);
  });

  test('have names, and others are refused', () => {
    const { schedulers } = skewed();
    expect(() => schedulers.pause('balance', NOW_MS)).toThrow(
      /unknown scheduler "balance"; the schedulers are scatter, /,
    );
    expect(() => schedulers.resume('balance')).toThrow(/unknown scheduler "balance"/);
  });

  test('that balance rest while ranges are scattered', () => {
    const { schedulers, controller, tick } = bind(skewed());
    schedulers.scatter.request([1, 2, 3, 4, 5, 6], NOW_MS);
    tick();
    expect(new Set(controller.active().map(({ kind }) => kind))).toEqual(new Set(['scatter']));
  });

  test('do not move replicas while limits keep ranges from being repaired', () => {
    const ranges = Array.from({ length: 6 }, (_, i) => rangeInfo(i + 1, { voters: [1, 2] }));
    const scheduling = schedulingBed({ nodes: upNodes(5), ranges, settings: { operatorsMax: 1 } });
    scheduling.tick(NOW_MS);
    expect(scheduling.controller.active()).toMatchObject([{ kind: 'repair' }]);
    expect(scheduling.schedulers.list(NOW_MS).find(({ name }) => name === 'replica-count')?.last).toBe(
      'waiting for repairs: 5 ranges need one',
    );
  });
});

describe('why', () => {
  test('a range is told with its operator, its past and the schedulers', () => {
    const scheduling = skewed();
    scheduling.tick(NOW_MS);
    const [first, second] = scheduling.controller.active();
    scheduling.controller.cancel(first?.operatorId ?? 0, 'cancelled by hand', NOW_MS);
    const lines = (rangeId: number) => {
      const range = scheduling.model.range(rangeId);
      return range === undefined ? [] : whyRange(scheduling, range, NOW_MS);
    };
    expect(lines(second?.rangeId ?? 0)).toEqual(
      expect.arrayContaining([
        expect.stringMatching(/^operator 2 \(balanceLeaders\) is running, step 1 of 1: leaders are spread unevenly/),
        'balancing leaves it alone: an operator is running',
        'leader-count: the nodes have 2 to 2 leaders, which is within the tolerance',
      ]),
    );
    expect(lines(first?.rangeId ?? 0)).toEqual(
      expect.arrayContaining([
        'it has no problems',
        'balancing leaves it alone: it was moved recently and is left alone for 2m',
        expect.stringMatching(/^earlier: operator 1 .* ended as cancelled: cancelled by hand$/),
      ]),
    );
  });

  test('a range that cannot be mended is told with what stands in the way', () => {
    const range = rangeInfo(1, { voters: [1, 2] });
    const lines = whyRange(schedulingBed({ nodes: upNodes(2), ranges: [range] }), range, NOW_MS);
    expect(lines[0]).toBe(
      'it cannot be repaired now: it has 2 of 3 replicas, and no node can take a replica: each of nodes 1, 2 already has a replica',
    );
  });

  test('a node is told with what keeps it from getting anything', () => {
    const scheduling = schedulingBed({ nodes: upNodes(3), ranges: [rangeInfo(1, { voters: [1, 2, 3] })] });
    const told = (change: object) => {
      const node = scheduling.model.node(1);
      if (node === undefined) return [];
      return whyNode(scheduling, { ...node, info: { ...node.info, ...change } }, NOW_MS).slice(0, 2);
    };
    expect(told({})[0]).toBe('it has 1 replica and leads 1');
    expect(told({ livenessSinceMs: NOW_MS - 1 })[1]).toBe(
      'balancing moves nothing to it yet: it has been up for less than 30 s',
    );
    const [, node] = [...scheduling.model.nodes()];
    if (node !== undefined) scheduling.nodeReported({ ...node.info, duty: 'draining' });
    const drained = scheduling.model.node(2);
    expect(drained === undefined ? [] : whyNode(scheduling, drained, NOW_MS)[1]).toBe(
      'it receives nothing: it is draining',
    );
  });
});

function bind(scheduling: ReturnType<typeof skewed>) {
  const { schedulers, controller } = scheduling;
  return { schedulers, controller, tick: (nowMs = NOW_MS) => scheduling.tick(nowMs) };
}
