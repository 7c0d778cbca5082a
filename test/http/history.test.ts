/**
 * Activity, heat and live data, in front of masters that the test plays; every answer is checked against the document.
 */
import { ServiceError } from '@remora/base';
import type { Backend } from '@remora/gateway';
import { KV_SPACE, NODE_RATES } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { OF_HISTORY, unseenAnswers } from './described.ts';
import { HttpBed, type HttpCall, type Listening } from './http-bed.ts';

const LIVE = '/v1/cluster/live?topics=';
const key = (text: string): Buffer => Buffer.of(KV_SPACE, ...Buffer.from(text));

/** Masters whose answers the test changes. */
class Masters {
  readonly asked: { readonly method: string; readonly request: unknown }[] = [];
  answers: Record<string, unknown> = {
    'master.operators': [],
    'master.schedulers': [],
    'master.check': { nodes: 1, ranges: 1, conditions: [] },
    'master.nodes': { clusterId: 'c', masterLeader: 1, leadingMs: 9, nodes: [] },
    'master.upgradeStatus': { inForce: 1, newest: 1, nodes: [], blockers: [] },
    'master.ranges': { ranges: [range(2, '', 'm'), range(3, 'm', '')], more: false },
    'node.now': { spanMs: 2_000, rates: { requestsPerS: 12.3456, p99Ms: 7 } },
  };
  readonly bed = new HttpBed(undefined, (method, request) => this.answer(method, request));

  answer(method: string, request: unknown): unknown {
    this.asked.push({ method, request });
    if (method in this.answers) return this.answers[method];
    throw new Error(`no answer for ${method}`);
  }

  times(method: string): number {
    return this.asked.filter((each) => each.method === method).length;
  }

  async seconds(count: number): Promise<void> {
    for (let i = 0; i < count; i++) await this.bed.world.run(1_000);
  }
}

function range(rangeId: number, start: string, end: string, readsPerS = 1) {
  const bound = (text: string): Buffer => (text === '' ? Buffer.of() : key(text));
  return {
    descriptor: {
      ...{ rangeId, start: bound(start), end: bound(end), epoch: { confVersion: 1, version: 1 } },
      ...{ revisionSource: 'master', replicas: [{ replicaId: 5, nodeId: 1, type: 'voter' }] },
    },
    leaderNode: 1,
    reports: [
      {
        ...{ nodeId: 1, silentMs: 5 },
        report: {
          bytes: 10,
          lead: { keys: 2, readsPerS, readBytesPerS: 0, writesPerS: 0, writeBytesPerS: 0 },
        },
      },
    ],
  };
}

describe('the last hours', () => {
  test('have the rates of nodes by minute; what was not measured is null', async () => {
    const masters = new Masters();
    const values = Float32Array.from(NODE_RATES.flatMap((_name, r) => [r + 1, Number.NaN]));
    masters.answers['master.activity'] = { span: { first: 29_000_000, count: 2 }, nodes: [{ nodeId: 3, values }] };
    expect(await masters.bed.done({ method: 'GET', target: '/v1/cluster/activity?minutes=2' })).toEqual({
      ...{ stepMs: 60_000, times: [1_740_000_000_000, 1_740_000_060_000] },
      nodes: [
        {
          ...{ nodeId: 3, requestsPerS: [1, null], readsPerS: [2, null], writesPerS: [3, null], locksPerS: [4, null] },
          ...{ p50Ms: [5, null], p99Ms: [6, null], fsyncP99Ms: [7, null], commitP99Ms: [8, null] },
        },
      ],
    });
    expect(masters.asked).toEqual([{ method: 'master.activity', request: { minutes: 2 } }]);
  });

  test('have the load by minute and key; minutes of which nothing is known are null', async () => {
    const masters = new Masters();
    masters.answers['master.heat'] = {
      span: { first: 29_000_000, count: 2 },
      borders: [key('a'), key('b')],
      values: Float32Array.of(1.23456, 0, Number.NaN, Number.NaN),
    };
    const target = '/v1/cluster/heat?minutes=2&columns=2&what=writeBytes&start=key%3Aa&end=key%3Ac';
    expect(await masters.bed.done({ method: 'GET', target })).toMatchObject({
      ...{ stepMs: 60_000, what: 'writeBytes', times: [1_740_000_000_000, 1_740_000_060_000] },
      ...{ borders: ['key:a', 'key:b', 'key:c'], values: [[1.235, 0], null] },
    });
    const request = { minutes: 2, columns: 2, measure: 'writeBytes', start: key('a'), end: key('c') };
    expect(masters.asked).toEqual([{ method: 'master.heat', request }]);
  });

  test.each([
    'activity?minutes=0',
    'activity?minutes=361',
    'activity?since=3',
    'heat?what=constructor',
    'heat?columns=513',
    'heat?start=key%3Ab&end=key%3Aa',
    'heat?start=nowhere',
    'live',
    'live?topics=',
    'live?topics=now,everything',
    'live?topics=now&minutes=3',
  ])('%s makes no sense', async (path) => {
    const masters = new Masters();
    expect(await masters.bed.refused({ method: 'GET', target: `/v1/cluster/${path}` })).toBe('400 INVALID_ARGUMENT');
    expect(masters.asked).toEqual([]);
  });
});

const types = ({ events }: Listening): readonly string[] => events.map(({ type }) => type);

describe('live data', () => {
  test('has the whole state of each topic first, and then an event after each change', async () => {
    const masters = new Masters();
    const live = await masters.bed.listen(`${LIVE}overview,nodes,operators,schedulers`);
    await masters.seconds(3);
    expect([...types(live)].sort()).toEqual(['nodes', 'operators', 'overview', 'schedulers']);
    const operator = {
      ...{ operatorId: 4, rangeId: 2, kind: 'admin', status: 'running', reason: 'asked', steps: ['a'], step: 0 },
      ...{ ageMs: 12, endedMs: -1, outcome: '' },
    };
    masters.answers['master.operators'] = [operator];
    await masters.seconds(2);
    masters.answers['master.operators'] = [{ ...operator, ageMs: 4_000 }];
    await masters.seconds(2);
    expect(types(live).slice(4)).toEqual(['operators']);
    expect(live.events.at(-1)?.data).toMatchObject({ operators: [{ id: 4, ageMs: 12 }] });
    live.close();
  });

  test('is read once for all clients, and not at all without any (TF1)', async () => {
    const masters = new Masters();
    const clients = await Promise.all([1, 2, 3].map(() => masters.bed.listen(`${LIVE}operators`)));
    await masters.seconds(10);
    const readings = masters.times('master.operators');
    expect(readings).toBeGreaterThan(5);
    expect(readings).toBeLessThanOrEqual(11);
    for (const client of clients) {
      expect(types(client)).toEqual(['operators']);
      client.close();
    }
    await masters.seconds(5);
    expect(masters.times('master.operators')).toBe(readings);
    const later = await masters.bed.listen(`${LIVE}operators`);
    expect(types(later)).toEqual(['operators']);
    later.close();
  });

  test('has of ranges only those that changed, and those that have ended', async () => {
    const masters = new Masters();
    const live = await masters.bed.listen(`${LIVE}ranges`);
    expect(live.events[0]?.data).toMatchObject({
      whole: true,
      ranges: [
        { id: 2, start: '-', end: 'key:m', leaderNode: 1, keys: 2, load: { readsPerS: 1 } },
        { id: 3, start: 'key:m', end: '-' },
      ],
    });
    masters.answers['master.ranges'] = { ranges: [range(2, '', '', 77)], more: false };
    await masters.seconds(3);
    expect(live.events.slice(1).map(({ data }) => data)).toMatchObject([
      { whole: false, ranges: [{ id: 2, end: '-', load: { readsPerS: 77 } }], removed: [3] },
    ]);
    live.close();
  });

  test('says what each node counts now', async () => {
    const masters = new Masters();
    const live = await masters.bed.listen(`${LIVE}now`);
    await masters.seconds(1);
    const measured = { spanMs: 2_000, requestsPerS: 12.35, readsPerS: null, p50Ms: null, p99Ms: 7 };
    expect(live.events[0]?.data).toMatchObject({ nodes: [measured] });
    live.close();
  });

  test('says once that a topic cannot be read, and has its whole state when it can again (TF3)', async () => {
    const masters = new Masters();
    const live = await masters.bed.listen(`${LIVE}ranges`);
    const { 'master.ranges': ranges } = masters.answers;
    masters.answers['master.ranges'] = new ServiceError('NODE_CONFLICT', 'the masters are elsewhere');
    await masters.seconds(5);
    masters.answers['master.ranges'] = ranges;
    await masters.seconds(3);
    expect(types(live)).toEqual(['ranges', 'problem', 'ranges']);
    expect(live.events[1]?.data).toMatchObject({ topic: 'ranges', code: 'NODE_CONFLICT' });
    expect(live.events[2]?.data).toMatchObject({ whole: true });
    live.close();
  });

  test('a client that is behind misses events, and gets the whole state when it has caught up (LS1)', async () => {
    const masters = new Masters();
    const live = await masters.bed.listen(`${LIVE}ranges,schedulers`);
    live.full = true;
    for (let readsPerS = 10; readsPerS < 20; readsPerS++) {
      masters.answers['master.ranges'] = { ranges: [range(2, '', 'm', readsPerS), range(3, 'm', '')], more: false };
      await masters.seconds(2);
    }
    expect(types(live).slice(2)).toEqual(['ranges']);
    live.full = false;
    live.drain();
    expect(types(live).slice(2)).toEqual(['ranges', 'ranges']);
    expect(live.events.at(-1)?.data).toMatchObject({ whole: true, ranges: [{ load: { readsPerS: 19 } }, { id: 3 }] });
    live.close();
  });
});

describe('the permission', () => {
  /** `mayLook` is asked for each decision. */
  const guarded = (mayLook: () => boolean, masters = new Masters()): HttpBed => {
    const check = (): void => {
      if (!mayLook()) throw new ServiceError('PERMISSION_DENIED', 'only root may do that');
    };
    return new HttpBed(
      ({ backend }): Backend =>
        new Proxy(backend, { get: (of, name) => (name === 'check' ? check : Reflect.get(of, name)) }),
      (method, request) => masters.answer(method, request),
    );
  };

  test.each<HttpCall>([
    { method: 'GET', target: '/v1/cluster/activity' },
    { method: 'GET', target: '/v1/cluster/heat' },
    { method: 'GET', target: `${LIVE}now` },
  ])('is needed for $target', async (call) => {
    expect(await guarded(() => false).refused(call)).toBe('403 PERMISSION_DENIED');
  });

  test('ends a stream with an error when it is lost (LS2)', async () => {
    let isRoot = true;
    const masters = new Masters();
    const bed = guarded(() => isRoot, masters);
    const live = await bed.listen(`${LIVE}ranges`);
    isRoot = false;
    masters.answers['master.ranges'] = { ranges: [range(2, '', '')], more: false };
    await bed.world.run(3_000);
    expect(types(live)).toEqual(['ranges', 'error']);
    expect(live.events[1]?.data).toMatchObject({ error: { code: 'PERMISSION_DENIED' } });
    const readings = masters.times('master.ranges');
    await bed.world.run(5_000);
    expect(masters.times('master.ranges')).toBe(readings);
    live.close();
  });
});

test('every answer that the document names was seen', () => {
  expect(unseenAnswers((answer) => OF_HISTORY.test(answer))).toEqual([]);
});
