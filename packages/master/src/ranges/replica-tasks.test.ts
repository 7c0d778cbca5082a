import type { NodeHeartbeat, RangeDescriptor, RangeReport } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { CONF } from '../../test/support/descriptor.ts';
import { MasterState } from '../metadata/master-state.ts';
import { replicaTasks } from './replica-tasks.ts';

function range(rangeId: number, start: string, end: string, version: number): RangeDescriptor {
  const replicas = [1, 2, 3].map((nodeId) => ({ replicaId: 100 * rangeId + nodeId, nodeId, type: 'voter' as const }));
  const epoch = { confVersion: 5, version };
  return { rangeId, start: Buffer.from(start), end: Buffer.from(end), epoch, replicas, revisionSource: 'master' };
}

/** On a node without a replica that it ought to have. */
function answerTo(state: MasterState, ...reports: readonly Partial<RangeReport>[]) {
  const epoch = { confVersion: 9, version: 2 };
  const rest = { replicaId: 304, epoch, term: 1, applied: 1, bytes: 0, silent: true, lead: undefined };
  const ranges = reports.map((report) => ({ rangeId: 3, ...rest, ...report }));
  const space = { capacityBytes: 1, availableBytes: 1 };
  const heartbeat: NodeHeartbeat = {
    nodeId: 4,
    incarnation: 'x',
    space,
    labels: {},
    hasMaster: true,
    ranges,
    results: [],
    conditions: [],
    authRevision: 0,
  };
  return replicaTasks(state, heartbeat);
}

describe('a replica of a range that was merged away', () => {
  const merged = () => {
    const state = new MasterState(CONF);
    for (const each of [range(2, '', 'm', 2), range(3, 'm', '', 2), range(2, '', '', 3)]) {
      state.apply({ type: 'describeRange', descriptor: each });
    }
    return state;
  };

  test('is told that it does not belong, from whatever version it has (RT3)', () => {
    const no = { type: 'removeReplica', rangeId: 3, replicaId: 304, confVersion: 10 };
    expect(answerTo(merged(), {})).toEqual([no]);
  });

  test('is left while it hears a leader', () => expect(answerTo(merged(), { silent: false })).toEqual([]));

  test('is left while its node has a replica of the range that takes over its keys', () => {
    expect(answerTo(merged(), {}, { rangeId: 2, replicaId: 204 })).toEqual([]);
  });

  test('is left also when that one was merged away in turn', () => {
    const state = new MasterState(CONF);
    const history = [range(4, '', 'c', 2), range(2, 'c', 'm', 2), range(3, 'm', '', 2)];
    for (const each of [...history, range(2, 'c', '', 3), range(4, '', '', 4)]) {
      state.apply({ type: 'describeRange', descriptor: each });
    }
    expect(answerTo(state, {}, { rangeId: 4, replicaId: 404, silent: false })).toEqual([]);
    expect(answerTo(state, {})).toHaveLength(1);
  });
});

describe('a replica that was removed', () => {
  const known = () => {
    const state = new MasterState(CONF);
    state.apply({ type: 'describeRange', descriptor: range(3, 'm', '', 2) });
    return state;
  };

  test.each([{ silent: false }, { silent: true }])('is told so at once, whether it asks or not ($silent)', (report) => {
    const no = { type: 'removeReplica', rangeId: 3, replicaId: 304, confVersion: 5 };
    expect(answerTo(known(), { ...report, epoch: { confVersion: 4, version: 2 } })).toEqual([no]);
  });

  test('is left when it may have joined since (RT2)', () => {
    expect(answerTo(known(), { epoch: { confVersion: 5, version: 2 } })).toEqual([]);
  });

  test('is one that the membership does not have', () => {
    expect(answerTo(known(), { replicaId: 302, epoch: { confVersion: 4, version: 2 } })).toEqual([]);
  });
});

test('a replica of a range of which the masters never heard is left: it may be of a split that has just been', () => {
  expect(answerTo(new MasterState(CONF), { rangeId: 9 })).toEqual([]);
});
