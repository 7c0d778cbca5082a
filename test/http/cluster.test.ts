/** `/v1/cluster` in front of masters that the test plays; every answer is checked against the document. */
import { ServiceError } from '@remora/base';
import type { Backend } from '@remora/gateway';
import { KV_SPACE } from '@remora/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { OF_CLUSTER, unseenAnswers } from './described.ts';
import { HttpBed, type HttpCall } from './http-bed.ts';

const DESCRIPTOR = {
  ...{ rangeId: 2, start: Buffer.of(KV_SPACE, ...Buffer.from('orders/')), end: Buffer.of() },
  ...{ epoch: { confVersion: 3, version: 1 }, revisionSource: 'range' },
  replicas: [1, 2].map((nodeId) => ({ replicaId: 10 + nodeId, nodeId, type: 'voter' })),
};
const LEAD = { readsPerS: 5, readBytesPerS: 50, writesPerS: 2.5, writeBytesPerS: 20 };
const RANGE = {
  descriptor: DESCRIPTOR,
  leaderNode: 1,
  reports: [{ nodeId: 1, silentMs: 7.5, report: { replicaId: 11, bytes: 600, lead: LEAD } }],
};
const OPERATOR = {
  ...{ operatorId: 4, rangeId: 2, kind: 'admin', status: 'running', reason: 'asked', steps: ['a', 'b'], step: 1 },
  ...{ ageMs: 12.5, endedMs: -1, outcome: '' },
};
const SCHEDULER = { name: 'balance', description: 'moves', pausedMs: -1, last: 'even', settings: ['x'] };
const NODE = {
  descriptor: {
    ...{ nodeId: 1, name: 'n1', roles: ['gateway'], version: '0.1.0' },
    ...{ peerAddress: 'a:1', clientAddress: 'a:2', httpAddress: 'a:3' },
  },
  ...{
    state: 'up',
    duty: 'serving',
    maintenanceLeftMs: 0,
    labels: { zone: 'a' },
    silentMs: 3.5,
    replicas: 1,
    leaders: 1,
  },
  ...{ space: { capacityBytes: 10, availableBytes: 5 }, bytes: 600, isMaster: true },
};
const SETTING = { name: 'split-size', value: '1', defaultValue: '2', placeholder: '<bytes>', description: 'splits' };
const CONDITION = {
  ...{ name: 'silentNode', severity: 'warning', scope: 'node', rangeId: 0, nodeId: 2 },
  ...{ text: 'n2 is silent', advice: 'look', docs: 'docs/reference/conditions.md#silentnode' },
};
const UPGRADE = {
  ...{ inForce: 1, newest: 2, blockers: ['node 2'] },
  nodes: [{ nodeId: 1, name: 'n1', build: '0.2.0', state: 'up', min: 1, max: 2, inForce: 1 }],
};

const ANSWERS: Readonly<Record<string, unknown>> = {
  'master.nodes': { clusterId: 'c', masterLeader: 1, leadingMs: 9.5, nodes: [NODE] },
  'master.check': { nodes: 1, ranges: 1, conditions: [CONDITION] },
  'master.upgradeStatus': UPGRADE,
  'master.finalizeUpgrade': UPGRADE,
  'master.ranges': { ranges: [RANGE], more: false },
  'master.hotRanges': { ranges: [RANGE], more: false },
  'master.operators': [OPERATOR],
  'master.cancelOperator': { ...OPERATOR, status: 'canceled', endedMs: 1 },
  'master.steerRange': OPERATOR,
  'master.schedulers': [SCHEDULER],
  'master.pauseScheduler': [{ ...SCHEDULER, pausedMs: 60_000 }],
  'master.rebalance': { changes: [{ rangeId: 2, kind: 'move', reason: 'uneven', steps: ['a'] }], schedulers: [] },
  'master.settings': [SETTING],
  'master.setSetting': [SETTING],
  'master.setNodeDuty': undefined,
  'master.why': { lines: ['all is well'] },
};

/** Names of methods with what they were asked, in order. */
let asked: { readonly method: string; readonly request: unknown }[];
let bed: HttpBed;

beforeEach(() => {
  asked = [];
  bed = new HttpBed(undefined, (method, request) => {
    asked.push({ method, request });
    if (method in ANSWERS) return ANSWERS[method];
    throw new Error(`no answer for ${method}`);
  });
});

const get = <Body>(target: string): Promise<Body> => bed.done<Body>({ method: 'GET', target });

describe('what is shown', () => {
  test('the cluster, its health and its nodes', async () => {
    const node = {
      ...{ id: 1, name: 'n1', state: 'up', duty: 'serving', roles: ['gateway'], isMaster: true, version: '0.1.0' },
      ...{ peerAddress: 'a:1', clientAddress: 'a:2', httpAddress: 'a:3', silentMs: 3, maintenanceLeftMs: 0 },
      ...{ replicas: 1, leaders: 1, bytes: 600, capacityBytes: 10, availableBytes: 5, labels: { zone: 'a' } },
    };
    const health = { nodes: 1, ranges: 1, conditions: [CONDITION] };
    expect(await get('/v1/cluster')).toMatchObject({
      ...{ clusterId: 'c', masterLeader: 1, leadingMs: 9, version: { inForce: '0.1', newest: '0.2' } },
      ...{ authentication: false, nodes: [node], health },
    });
    expect(await get('/v1/cluster/health')).toEqual(health);
    expect(await get('/v1/cluster/nodes')).toEqual({ nodes: [node] });
  });

  test('what this node knows, while the masters have no leader', async () => {
    const alone = new HttpBed(undefined, (method) =>
      method === 'master.check' ? ANSWERS[method] : new ServiceError('UNAVAILABLE', 'no leader'),
    );
    const cluster = await alone.done<Record<string, unknown>>({ method: 'GET', target: '/v1/cluster' });
    expect(cluster.masterLeader).toBeUndefined();
    expect(cluster.version).toEqual({ inForce: '', newest: '' });
    for (const node of cluster.nodes as { readonly state: string }[]) expect(node.state).toBe('unknown');
  });

  test('ranges, in pages, by load and by id', async () => {
    const range = {
      ...{ id: 2, start: 'key:orders/', end: '-', leaderNode: 1, load: LEAD },
      replicas: [{ id: 11, nodeId: 1, bytes: 600, silentMs: 7, state: 'unknown' }, { nodeId: 2 }],
    };
    expect(await get('/v1/cluster/ranges?from=key%3Aorders%2F42&limit=2')).toMatchObject({ ranges: [range] });
    expect(asked.at(-1)?.request).toEqual({
      from: Buffer.of(KV_SPACE, ...Buffer.from('orders/42')),
      limit: 2,
      rangeId: 0,
    });
    expect(await get('/v1/cluster/hot-ranges?by=readBytes')).toMatchObject({ ranges: [range] });
    expect(asked.at(-1)?.request).toMatchObject({ by: 'readBytes' });
    expect(await get('/v1/cluster/ranges/2')).toMatchObject(range);
    expect(asked.at(-1)?.request).toMatchObject({ rangeId: 2 });
  });

  test('operators, schedulers, plans, settings, versions and reasons', async () => {
    const { operatorId: id, endedMs: _, ageMs: __, ...operator } = OPERATOR;
    expect(await get('/v1/cluster/operators?ended=true&range=2')).toEqual({
      operators: [{ ...operator, id, ageMs: 12 }],
    });
    expect(asked.at(-1)?.request).toMatchObject({ ended: true, rangeId: 2 });
    const { pausedMs: ___, ...scheduler } = SCHEDULER;
    expect(await get('/v1/cluster/schedulers')).toEqual({ schedulers: [scheduler] });
    expect(await get('/v1/cluster/rebalance')).toMatchObject({ changes: [{ rangeId: 2 }] });
    expect(asked.at(-1)).toEqual({ method: 'master.rebalance', request: { dryRun: true } });
    expect(await get('/v1/cluster/settings')).toEqual({ settings: [SETTING] });
    expect(await get('/v1/cluster/upgrade')).toMatchObject({ inForce: '0.1', newest: '0.2', blockers: ['node 2'] });
    expect(await get('/v1/cluster/nodes/1/why')).toEqual({ lines: ['all is well'] });
    expect(await get('/v1/cluster/ranges/2/why')).toEqual({ lines: ['all is well'] });
    expect(asked.at(-1)?.request).toEqual({ rangeId: 2, nodeId: 0 });
  });
});

/** Each with what the masters are asked for. */
const CHANGES: readonly (readonly [method: string, target: string, body: object, asks: string, request: object])[] = [
  ['POST', 'ranges/2/split', { at: 'key:m' }, 'steerRange', { rangeId: 2, change: { type: 'split' } }],
  ['POST', 'ranges/2/merge', { source: 3 }, 'steerRange', { change: { type: 'merge', source: 3 } }],
  ['POST', 'ranges/2/move', { from: 1, to: 3 }, 'steerRange', { change: { type: 'move', from: 1, to: 3 } }],
  ['POST', 'ranges/2/add-replica', { node: 3 }, 'steerRange', { change: { type: 'addReplica', nodeId: 3 } }],
  ['POST', 'ranges/2/remove-replica', { node: 2 }, 'steerRange', { change: { type: 'removeReplica', nodeId: 2 } }],
  ['DELETE', 'operators/4', {}, 'cancelOperator', { operatorId: 4 }],
  ['PUT', 'schedulers/balance', { pausedFor: '1m' }, 'pauseScheduler', { name: 'balance', forMs: 60_000 }],
  ['POST', 'rebalance', {}, 'rebalance', { dryRun: false }],
  ['PUT', 'settings/split-size', { value: '7' }, 'setSetting', { name: 'split-size', value: '7' }],
  ['POST', 'upgrade/finalize', { version: '0.2' }, 'finalizeUpgrade', { version: 2 }],
  ['PUT', 'nodes/1/duty', { duty: 'maintenance', for: '10m' }, 'setNodeDuty', { duty: 'maintenance', forMs: 600_000 }],
];

describe('what is changed', () => {
  test.each(CHANGES)('%s /v1/cluster/%s', async (method, path, body, asks, request) => {
    const answer = await bed.done<object>({ method, target: `/v1/cluster/${path}`, body });
    expect(answer).toBeTypeOf('object');
    expect(asked.at(-1)).toMatchObject({ method: `master.${asks}`, request });
  });

  test('a change of a range that names its epoch does not ask for it', async () => {
    const body = { source: 3, confVersion: 9, version: 8 };
    await bed.done({ target: '/v1/cluster/ranges/2/merge', body });
    expect(asked).toMatchObject([{ request: { epoch: { confVersion: 9, version: 8 } } }]);
  });
});

const CALLS: readonly HttpCall[] = [
  ...['', '/health', '/nodes', '/nodes/1/why', '/ranges', '/hot-ranges', '/ranges/2', '/ranges/2/why', '/operators'],
  ...['/schedulers', '/rebalance', '/settings', '/upgrade'],
].map((path) => ({ method: 'GET', target: `/v1/cluster${path}` }));
const MORE: readonly HttpCall[] = [
  ...CHANGES.map(([method, path, body]) => ({ method, target: `/v1/cluster/${path}`, body })),
  { target: '/v1/cluster/ranges/2/transfer', body: { to: 2 } },
  { method: 'PUT', target: '/v1/cluster/nodes/1/log-level', body: { level: 'debug' } },
];

describe('what is refused', () => {
  test.each([...CALLS, ...MORE])('$method $target without the permission', async ({ ...call }) => {
    const denied = new ServiceError('PERMISSION_DENIED', 'only root may do that');
    const strict = new HttpBed(
      ({ backend }): Backend =>
        new Proxy(backend, {
          get: (of, name) =>
            name === 'check'
              ? () => {
                  throw denied;
                }
              : Reflect.get(of, name),
        }),
      () => {
        throw new Error('the masters are not asked');
      },
    );
    expect(await strict.refused(call)).toBe('403 PERMISSION_DENIED');
  });

  test.each(MORE)('$method $target as a GET', async ({ target }) => {
    const { status } = await bed.world.until(bed.ask({ method: 'GET', target }));
    // The paths of some changes show something when they are read.
    if (status === 200) expect(asked.at(-1)).toEqual({ method: 'master.rebalance', request: { dryRun: true } });
    else expect(status).toBe(405);
  });

  test.each<HttpCall>([
    { method: 'GET', target: '/v1/cluster?x=1' },
    { method: 'GET', target: '/v1/cluster/ranges?from=nowhere' },
    { method: 'GET', target: '/v1/cluster/ranges?from=lease%3Azz' },
    { method: 'GET', target: '/v1/cluster/ranges?limit=-1' },
    { method: 'GET', target: '/v1/cluster/hot-ranges?by=constructor' },
    { method: 'GET', target: '/v1/cluster/operators?ended=perhaps' },
    { method: 'GET', target: '/v1/cluster/ranges/0' },
    { method: 'GET', target: '/v1/cluster/nodes/n1/why' },
    { target: '/v1/cluster/ranges/2/merge', body: {} },
    { target: '/v1/cluster/ranges/2/split', body: { at: 'x', when: 'now' } },
    { target: '/v1/cluster/ranges/2/move', body: { from: 1, to: '2' } },
    { method: 'PUT', target: '/v1/cluster/nodes/1/duty', body: { duty: 'dance' } },
    { method: 'PUT', target: '/v1/cluster/settings/split-size', body: {} },
    { target: '/v1/cluster/upgrade/finalize', body: { version: 'newest' } },
  ])('$method $target with what makes no sense', async (call) => {
    expect(await bed.refused(call)).toBe('400 INVALID_ARGUMENT');
    expect(asked.filter(({ method }) => method !== 'master.ranges')).toEqual([]);
  });

  test('a range that does not exist', async () => {
    const empty = new HttpBed(undefined, () => ({ ranges: [], more: false }));
    expect(await empty.refused({ method: 'GET', target: '/v1/cluster/ranges/9' })).toBe('404 INVALID_ARGUMENT');
    const unknown = new HttpBed(undefined, () => new ServiceError('RANGE_NOT_FOUND', 'unknown range 2'));
    for (const call of [...CALLS, ...MORE].filter(({ target }) => target.includes('/ranges/2'))) {
      expect(await unknown.refused(call)).toBe('404 INVALID_ARGUMENT');
    }
  });

  test('what the masters refuse', async () => {
    const conflict = new HttpBed(undefined, () => new ServiceError('NODE_CONFLICT', 'it has replicas'));
    for (const call of MORE) {
      if (/log-level|schedulers|rebalance|settings/.test(call.target)) continue;
      expect(await conflict.refused(call)).toBe('409 NODE_CONFLICT');
    }
  });
});

test('every answer that the document names was seen', () => {
  const elsewhere = /(PUT \/v1\/cluster\/nodes\/\{node\}\/log-level|POST .*\/transfer) 200/;
  expect(
    unseenAnswers((answer) => OF_CLUSTER.test(answer) && !elsewhere.test(answer) && !/ 400$/.test(answer)),
  ).toEqual([]);
});
