import type { ServiceError } from '@remora/base';
import type { AuthChange, NodeDescriptor, NodeDuty, RangeDescriptor } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { CONF, descriptor } from '../../test/support/descriptor.ts';
import { ENDED_OPERATORS_MAX, type EndedOperator } from './ended-operator.ts';
import { MasterState } from './master-state.ts';
import { decodeMasterCommand, decodeMasterImage, encodeMasterCommand, encodeMasterImage } from './metadata-codec.ts';

function ended(operatorId: number): EndedOperator {
  return {
    ...{
      operatorId,
      rangeId: 2,
      partner: 0,
      kind: 'admin',
      status: 'success',
      reason: 'requested: split',
      outcome: 'done',
    },
    ...{ steps: ['split in the middle'], step: 1, createdMs: 1_700_000_000_000, endedMs: 1_700_000_000_900 },
  };
}

function register(state: MasterState, node: NodeDescriptor): number | string {
  try {
    const result = state.apply({ type: 'registerNode', descriptor: node });
    return result.type === 'registerNode' ? result.nodeId : result.type;
  } catch (error) {
    return (error as ServiceError).code;
  }
}

describe('registering a node', () => {
  const rows = [
    { name: 'a founder keeps its id', node: descriptor(2), expect: 2 },
    { name: 'a node without an id gets one', node: descriptor(0, { name: 'x', incarnation: 'x' }), expect: 1_001 },
    {
      name: 'a node that never heard its id gets the same again',
      node: descriptor(0, { name: 'n1', incarnation: 'dir1' }),
      expect: 1,
    },
    { name: 'a node that moved is the same node', node: descriptor(1, { peerAddress: 'other:1' }), expect: 1 },
    {
      name: 'a node that lost its data may not come back under its id',
      node: descriptor(1, { incarnation: 'new' }),
      expect: 'NODE_CONFLICT',
    },
    {
      name: 'a node that lost its data may not come back under its name',
      node: descriptor(0, { name: 'n1', incarnation: 'new' }),
      expect: 'NODE_CONFLICT',
    },
    {
      name: 'a copy of a data directory may not be another node',
      node: descriptor(3, { incarnation: 'dir1' }),
      expect: 'NODE_CONFLICT',
    },
    {
      name: 'an id that was never given is not taken',
      node: descriptor(1_001, { incarnation: 'y' }),
      expect: 'NODE_CONFLICT',
    },
  ];
  test.each(rows)('$name', (row) => {
    const state = new MasterState(CONF);
    register(state, descriptor(1));
    const before = state.nodes();
    expect(register(state, row.node)).toBe(row.expect);
    if (typeof row.expect === 'string') expect(state.nodes()).toEqual(before);
  });
});

describe('what a range says of its membership', () => {
  const replicas = [{ replicaId: 1_001, nodeId: 1_001, type: 'voter' as const }];
  const rows = [
    { name: 'is taken when it is newer', confVersion: 3, expect: replicas },
    { name: 'is left when it is known', confVersion: 2, expect: undefined },
    { name: 'is left when it is older', confVersion: 1, expect: undefined },
  ];
  test.each(rows)('$name', ({ confVersion, expect: expected }) => {
    const state = new MasterState(CONF);
    state.apply({ type: 'bootstrapRange', nodeIds: [1, 2, 3] });
    const first = state.ranges()[0];
    if (first === undefined) throw new Error('there is a range');
    const known = { ...first, epoch: { confVersion: 2, version: 1 } };
    state.apply({ type: 'changeRange', descriptor: known });
    state.apply({ type: 'changeRange', descriptor: { ...first, epoch: { confVersion, version: 1 }, replicas } });
    expect(state.ranges()[0]?.replicas).toEqual(expected ?? known.replicas);
  });

  test('brings no bounds with it: those have an order of their own', () => {
    const state = new MasterState(CONF);
    state.apply({ type: 'bootstrapRange', nodeIds: [1, 2, 3] });
    const [first] = state.ranges();
    if (first === undefined) throw new Error('there is a range');
    const told = { ...first, end: Buffer.from('m'), epoch: { confVersion: 2, version: 4 }, replicas };
    state.apply({ type: 'changeRange', descriptor: told });
    expect(state.ranges()).toEqual([{ ...first, epoch: { confVersion: 2, version: 1 }, replicas }]);
  });

  test('takes the ids of its replicas, wherever they came from: they are given to nobody else', () => {
    const state = new MasterState(CONF);
    state.apply({ type: 'bootstrapRange', nodeIds: [1, 2, 3] });
    expect(state.apply({ type: 'allocateReplicas', count: 2 })).toMatchObject({ first: 1_004 });
    expect(state.apply({ type: 'allocateReplicas', count: 1 })).toMatchObject({ first: 1_006 });
    const [first] = state.ranges();
    if (first === undefined) throw new Error('there is a range');
    const byHand = [...first.replicas, { replicaId: 5_000, nodeId: 4, type: 'learner' as const }];
    const epoch = { confVersion: 2, version: 1 };
    state.apply({ type: 'changeRange', descriptor: { ...first, epoch, replicas: byHand } });
    expect(state.apply({ type: 'allocateReplicas', count: 1 })).toMatchObject({ first: 5_001 });
    state.apply({ type: 'changeRange', descriptor: { ...first, epoch: { confVersion: 3, version: 1 } } });
    const restored = new MasterState(CONF);
    restored.restore(decodeMasterImage(encodeMasterImage(state.image())));
    expect(restored.apply({ type: 'allocateReplicas', count: 1 })).toMatchObject({ first: 5_002 });
  });

  test('is refused for a range that does not exist', () => {
    const state = new MasterState(CONF);
    state.apply({ type: 'bootstrapRange', nodeIds: [1] });
    const [first] = state.ranges();
    if (first === undefined) throw new Error('there is a range');
    expect(() => state.apply({ type: 'changeRange', descriptor: { ...first, rangeId: 9 } })).toThrow('unknown range 9');
    expect(state.ranges()).toEqual([first]);
  });
});

describe('several ranges at the beginning', () => {
  const plans = ['', 'g', 'p'].map((key, i) => ({ start: Buffer.from(key), nodeIds: [1 + i, 2 + i] }));

  test('have all keys between them, ids of their own, and are numbered by the master', () => {
    const state = new MasterState(CONF);
    state.apply({ type: 'bootstrapRanges', ranges: plans });
    const shown = state.ranges().map(({ rangeId, start, end, replicas, revisionSource }) => ({
      ...{ rangeId, from: String(start), to: String(end), revisionSource },
      on: replicas.map(({ replicaId, nodeId }) => `${replicaId} on ${nodeId}`),
    }));
    expect(shown).toEqual([
      { rangeId: 2, from: '', to: 'g', revisionSource: 'master', on: ['1001 on 1', '1002 on 2'] },
      { rangeId: 3, from: 'g', to: 'p', revisionSource: 'master', on: ['1003 on 2', '1004 on 3'] },
      { rangeId: 4, from: 'p', to: '', revisionSource: 'master', on: ['1005 on 3', '1006 on 4'] },
    ]);
  });

  test('are refused where there are ranges', () => {
    const state = new MasterState(CONF);
    state.apply({ type: 'bootstrapRange', nodeIds: [1] });
    expect(() => state.apply({ type: 'bootstrapRanges', ranges: plans })).toThrow('already has ranges');
  });
});

test('a master restored from its image goes on as the original: no id is given twice', () => {
  const state = new MasterState(CONF);
  for (let i = 0; i < 3; i++) register(state, descriptor(0, { name: `x${i}`, incarnation: `x${i}` }));
  state.apply({ type: 'bootstrapRange', nodeIds: [1_001, 1_002, 1_003] });
  state.applied = { index: 9, term: 2 };
  const restored = new MasterState(CONF);
  restored.restore(decodeMasterImage(encodeMasterImage(state.image())));
  expect(encodeMasterImage(restored.image())).toEqual(encodeMasterImage(state.image()));
  expect(register(restored, descriptor(0, { name: 'y', incarnation: 'y' }))).toBe(1_004);
  expect(restored.ranges()[0]?.replicas.map((r) => r.replicaId)).toEqual([1_001, 1_002, 1_003]);
});

describe('the bound of revisions', () => {
  test('never falls, and survives a restart (M7)', () => {
    const state = new MasterState(CONF);
    for (const upTo of [500, 300]) state.apply({ type: 'liftRevisions', upTo });
    expect(state.revisionBound).toBe(500);
    const restored = new MasterState(CONF);
    restored.restore(decodeMasterImage(encodeMasterImage(state.image())));
    expect(restored.revisionBound).toBe(500);
  });

  test('is not in the image of a master that gave none out: earlier programs can read that', () => {
    const format = (state: MasterState): unknown => encodeMasterImage(state.image())[1];
    const state = new MasterState(CONF);
    expect(format(state)).toBe(1);
    state.apply({ type: 'liftRevisions', upTo: 500 });
    expect(format(state)).toBe(2);
  });
});

describe('what a node is there for', () => {
  const duty = (nodeId: number, to: NodeDuty, untilMs = 0) => ({ type: 'setDuty', nodeId, duty: to, untilMs }) as const;

  test('survives a restart, as pauses of schedulers, asked splits and ended ranges do', () => {
    const state = new MasterState(CONF);
    for (const id of [1, 2, 3]) register(state, descriptor(id));
    state.apply({ type: 'bootstrapRange', nodeIds: [1, 2, 3] });
    state.apply(duty(1, 'draining'));
    state.apply(duty(1, 'serving'));
    state.apply(duty(2, 'maintenance', 5_000));
    state.apply({ type: 'pauseScheduler', name: 'bytes', untilMs: 7_000 });
    state.apply({ type: 'pauseScheduler', name: 'space', untilMs: 7_000 });
    state.apply({ type: 'pauseScheduler', name: 'space', untilMs: 0 });
    const [range] = state.ranges();
    if (range === undefined) throw new Error('there is a range');
    const asked = state.apply({ type: 'askSplit', descriptor: range, byHand: false });
    const restored = new MasterState(CONF);
    restored.restore(decodeMasterImage(encodeMasterImage(state.image())));
    expect(encodeMasterImage(restored.image())).toEqual(encodeMasterImage(state.image()));
    expect([1, 2].map((id) => restored.dutyOf(id))).toMatchObject([
      { duty: 'serving' },
      { duty: 'maintenance', untilMs: 5_000 },
    ]);
    expect([...restored.pauses]).toEqual([['bytes', 7_000]]);
    expect(restored.apply({ type: 'askSplit', descriptor: range, byHand: false })).toEqual(asked);
  });

  test('the last operators that have ended survive a restart', () => {
    const state = new MasterState(CONF);
    for (let operatorId = 1; operatorId <= ENDED_OPERATORS_MAX + 5; operatorId++) {
      state.apply(decodeMasterCommand(encodeMasterCommand({ type: 'recordOperator', operator: ended(operatorId) })));
    }
    const restored = new MasterState(CONF);
    restored.restore(decodeMasterImage(encodeMasterImage(state.image())));
    expect(restored.operators).toHaveLength(ENDED_OPERATORS_MAX);
    expect([restored.operators[0], restored.operators.at(-1)]).toEqual([ended(6), ended(ENDED_OPERATORS_MAX + 5)]);
  });

  test('is not in the image of a master where all serve: earlier programs can read that', () => {
    const state = new MasterState(CONF);
    register(state, descriptor(1));
    state.apply(duty(1, 'draining'));
    expect(encodeMasterImage(state.image())[1]).toBe(4);
    state.apply(duty(1, 'serving'));
    expect(encodeMasterImage(state.image())[1]).toBe(1);
  });

  test('a node that was removed does not come back, by its id or with its data; its name is free (M9)', () => {
    const state = new MasterState(CONF);
    for (const id of [1, 2]) register(state, descriptor(id));
    state.apply(duty(2, 'removed'));
    expect(() => state.apply(duty(2, 'serving'))).toThrow('node 2 was already removed');
    expect(() => state.apply(duty(7, 'draining'))).toThrow('unknown node 7');
    expect(register(state, descriptor(2))).toBe('NODE_CONFLICT');
    expect(register(state, descriptor(0, { name: 'x', incarnation: 'dir2' }))).toBe('NODE_CONFLICT');
    expect(register(state, descriptor(0, { name: 'n2', incarnation: 'new' }))).toBe(1_001);
  });
});

describe('borders that people chose (RR6)', () => {
  const plans = ['', 'g', 'p'].map((start) => ({ start: Buffer.from(start), nodeIds: [1, 2, 3] }));
  const chosen = (state: MasterState) => state.ranges().map(({ rangeId }) => state.beginsAtChosen(rangeId));

  test('are those of a cluster that began with several ranges, and of splits by hand', () => {
    const state = new MasterState(CONF);
    state.apply({ type: 'bootstrapRanges', ranges: plans });
    expect(chosen(state)).toEqual([false, true, true]);
    const [first] = state.ranges();
    if (first === undefined) throw new Error('there is a range');
    const epoch = { confVersion: 1, version: 2 };
    for (const byHand of [false, true]) {
      const descriptor = state.range(first.rangeId) ?? first;
      state.apply({ type: 'askSplit', descriptor, byHand });
      const end = Buffer.from(byHand ? 'b' : 'd');
      state.apply({ type: 'describeRange', descriptor: { ...descriptor, end, epoch: { ...epoch } } });
      epoch.version++;
    }
    // They come in the order of their ids: what the masters split off by themselves is between the borders.
    expect(chosen(state)).toEqual([false, true, true, false, true]);
  });

  test('survive a restart, and go with the range that begins there; programs before them can read masters without', () => {
    const state = new MasterState(CONF);
    state.apply({ type: 'bootstrapRanges', ranges: plans.slice(0, 2) });
    const restored = new MasterState(CONF);
    restored.restore(decodeMasterImage(encodeMasterImage(state.image())));
    expect([chosen(restored), encodeMasterImage(state.image())[1]]).toEqual([[false, true], 6]);
    const [first] = state.ranges();
    if (first === undefined) throw new Error('there is a range');
    const epoch = { confVersion: 1, version: 2 };
    state.apply({ type: 'describeRange', descriptor: { ...first, end: Buffer.alloc(0), epoch } });
    expect([state.image().chosen, encodeMasterImage(state.image())[1]]).toEqual([[], 4]);
  });

  test('of splits that came to nothing are forgotten', () => {
    const state = new MasterState(CONF);
    state.apply({ type: 'bootstrapRange', nodeIds: [1, 2, 3] });
    const [range] = state.ranges();
    if (range === undefined) throw new Error('there is a range');
    state.apply({ type: 'askSplit', descriptor: range, byHand: true });
    expect(state.image().chosen).toHaveLength(1);
    const descriptor = { ...range, epoch: { confVersion: 2, version: 1 } };
    state.apply({ type: 'askSplit', descriptor, byHand: false });
    expect(state.image().chosen).toEqual([]);
  });
});

test('the ids of a split are new ones, above whatever ids a range was told by hand', () => {
  const state = new MasterState(CONF);
  state.apply({ type: 'bootstrapRange', nodeIds: [1, 2, 3] });
  const [range] = state.ranges();
  if (range === undefined) throw new Error('there is a range');
  const byHand = { ...range, rangeId: 40, start: Buffer.from('m'), epoch: { confVersion: 1, version: 2 } };
  state.apply({ type: 'describeRange', descriptor: { ...range, end: Buffer.from('m'), epoch: byHand.epoch } });
  state.apply({
    type: 'describeRange',
    descriptor: { ...byHand, replicas: [{ replicaId: 2_000, nodeId: 1, type: 'voter' }] },
  });
  const result = state.apply({ type: 'askSplit', descriptor: state.range(40) ?? range, byHand: false });
  expect(result).toMatchObject({ asked: { childId: 41, replicas: [{ replicaId: 2_001 }] } });
});

describe('settings', () => {
  const change = (expected: number, name: string, text: string) =>
    ({ type: 'changeSetting', expected, name, text }) as const;

  test('survive a restart, and go back to the default', () => {
    const state = new MasterState(CONF);
    state.apply(change(0, 'down-after', '5m'));
    state.apply(change(1, 'suspect-after', '2s'));
    state.apply(change(2, 'suspect-after', ''));
    const restored = new MasterState(CONF);
    restored.restore(decodeMasterImage(encodeMasterImage(state.image())));
    expect(restored.settings).toEqual({ version: 3, texts: new Map([['down-after', '5m']]) });
  });

  test('are not changed by whoever looked at older ones (M8)', () => {
    const state = new MasterState(CONF);
    state.apply(change(0, 'down-after', '5m'));
    expect(() => state.apply(change(0, 'suspect-after', '10m'))).toThrow('another setting was changed');
    expect(state.settings.texts).toEqual(new Map([['down-after', '5m']]));
  });

  test('are not in the image of a master that has none: earlier programs can read that', () => {
    const state = new MasterState(CONF);
    expect(encodeMasterImage(state.image())[1]).toBe(1);
    state.apply(change(0, 'down-after', '5m'));
    expect(encodeMasterImage(state.image())[1]).toBe(3);
  });
});

const LOCKS = { namespace: 'default', name: Buffer.from('orders/'), isPrefix: true, verb: 'steer' as const };
const AUTH_CHANGES: readonly AuthChange[] = [
  { type: 'setTokenKey', key: Buffer.alloc(32, 1) },
  { type: 'addUser', user: 'root', passwordHash: '' },
  { type: 'changePassword', user: 'root', passwordHash: '$scrypt$' },
  { type: 'grantRole', user: 'root', role: 'root' },
  { type: 'enable' },
  { type: 'addUser', user: 'ann', passwordHash: '' },
  { type: 'addRole', role: 'r' },
  { type: 'grantRole', user: 'ann', role: 'r' },
  { type: 'grantKeys', role: 'r', permission: { access: 'read', key: Buffer.from('a'), end: Buffer.from('b') } },
  { type: 'grantKeys', role: 'r', permission: { access: 'readWrite', key: Buffer.from('c') } },
  { type: 'grantLocks', role: 'r', permission: LOCKS },
  { type: 'revokeKeys', role: 'r', span: { key: Buffer.from('c') } },
  { type: 'revokeLocks', role: 'r', permission: LOCKS },
  { type: 'revokeRole', user: 'ann', role: 'r' },
  { type: 'deleteUser', user: 'ann' },
  { type: 'disable' },
  { type: 'deleteRole', role: 'r' },
];

describe('users and roles', () => {
  const masters = (image: MasterState) => decodeMasterImage(encodeMasterImage(image.image()));

  const founded = (): MasterState => {
    const state = new MasterState(CONF);
    state.apply({ type: 'bootstrapRange', nodeIds: [1] });
    return state;
  };

  test('each change raises the revision, and all survive a restart', () => {
    const state = founded();
    for (const [i, change] of AUTH_CHANGES.entries()) {
      expect(state.apply({ type: 'changeAuth', change })).toEqual({ type: 'changeAuth', revision: i + 2 });
      const restored = new MasterState(CONF);
      restored.restore(masters(state));
      expect(restored.auth).toEqual(state.auth);
    }
  });

  test('a refused change is an error, and changes nothing', () => {
    const state = founded();
    const before = state.auth;
    expect(() => state.apply({ type: 'changeAuth', change: { type: 'enable' } })).toThrow('there is no user root');
    expect(state.auth).toBe(before);
  });

  test('are not in the image of a master that has none', () => {
    expect(encodeMasterImage(new MasterState(CONF).image())[1]).toBe(1);
  });
});

test('commands survive the log', () => {
  const range: RangeDescriptor = {
    rangeId: 2,
    start: Buffer.from('a'),
    end: Buffer.alloc(0),
    epoch: { confVersion: 4, version: 1 },
    replicas: [{ replicaId: 1_001, nodeId: 3, type: 'learner' }],
    revisionSource: 'range',
  };
  for (const command of [
    { type: 'changeRange' as const, descriptor: range },
    { type: 'describeRange' as const, descriptor: range },
    { type: 'askSplit' as const, descriptor: range, byHand: false },
    { type: 'askSplit' as const, descriptor: range, byHand: true },
    { type: 'setDuty' as const, nodeId: 3, duty: 'maintenance' as const, untilMs: 1_700_000_000_000 },
    { type: 'pauseScheduler' as const, name: 'bytes', untilMs: 0 },
    { type: 'registerNode' as const, descriptor: descriptor(7) },
    { type: 'bootstrapRange' as const, nodeIds: [1, 2, 3] },
    {
      type: 'bootstrapRanges' as const,
      ranges: [
        { start: Buffer.alloc(0), nodeIds: [1, 2, 3] },
        { start: Buffer.from([3, 109]), nodeIds: [2, 3, 1] },
      ],
    },
    { type: 'liftRevisions' as const, upTo: 70 },
    { type: 'allocateReplicas' as const, count: 3 },
    { type: 'changeSetting' as const, expected: 3, name: 'down-after', text: '' },
    ...AUTH_CHANGES.map((change) => ({ type: 'changeAuth' as const, change })),
  ]) {
    expect(decodeMasterCommand(encodeMasterCommand(command))).toEqual(command);
  }
});

describe('a master that goes on alone', () => {
  const image = (state: MasterState) => decodeMasterImage(encodeMasterImage(state.image()));

  test('gives out ids and revisions far above those that it knows', () => {
    const state = new MasterState(CONF);
    register(state, descriptor(1));
    state.apply({ type: 'liftRevisions', upTo: 500 });
    const before = state.image();
    state.goOnAlone();
    const { nextNodeId, nextRangeId, nextReplicaId, revisionBound } = image(state);
    expect(nextNodeId).toBeGreaterThanOrEqual(before.nextNodeId + 1_000_000);
    expect(nextRangeId).toBeGreaterThanOrEqual(before.nextRangeId + 1_000_000);
    expect(nextReplicaId).toBeGreaterThanOrEqual(before.nextReplicaId + 1_000_000);
    expect(revisionBound).toBeGreaterThanOrEqual(500 + 1_000_000_000_000);
  });

  test('believes a node that it has never heard of, if its id may have been given out, also after a restart', () => {
    const state = new MasterState(CONF);
    register(state, descriptor(1));
    const unknown = descriptor(1_003, { name: 'x', incarnation: 'x' });
    expect(register(state, unknown)).toBe('NODE_CONFLICT');
    state.goOnAlone();
    const restored = new MasterState(CONF);
    restored.restore(image(state));
    expect(register(restored, unknown)).toBe(1_003);
    expect(register(restored, descriptor(0, { name: 'y', incarnation: 'y' }))).toBe(1_001_001);
    expect(register(restored, descriptor(1_001_002, { name: 'z', incarnation: 'z' }))).toBe('NODE_CONFLICT');
  });
});
