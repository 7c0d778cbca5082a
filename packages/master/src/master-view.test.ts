import type { NodeDescriptor, RangeDescriptor } from '@remora/protocol';
import { type ConfState, confOf } from '@remora/raft';
import { beforeEach, expect, test } from 'vitest';
import { MasterView } from './master-view.ts';
import type { Liveness } from './scheduling/cluster-model.ts';

const node = (nodeId: number): NodeDescriptor => ({
  ...{ nodeId, name: `n${nodeId}`, incarnation: 'secret', peerAddress: `h${nodeId}:1`, clientAddress: `h${nodeId}:2` },
  ...{ httpAddress: `h${nodeId}:3`, roles: ['master', 'data'], version: '0.1.0' },
});

interface Made {
  nodes: readonly NodeDescriptor[];
  ranges: readonly RangeDescriptor[];
  conf: ConfState;
  duty: 'serving' | 'draining' | 'removed';
  leaders: readonly (readonly [number, number])[];
  reports: number;
  liveness: Liveness;
  leader: number;
  term: number;
}

let made: Made;
let view: MasterView;
beforeEach(() => {
  made = {
    ...{ nodes: [node(1), node(2)], ranges: [], conf: confOf([1, 2]), duty: 'serving', leaders: [[2, 1]] },
    ...{ reports: 1, liveness: 'up', leader: 1, term: 5 },
  };
  view = viewOf(1);
});

function viewOf(nodeId: number): MasterView {
  return new MasterView({
    nodeId,
    shownClusterId: 'c',
    state: {
      nodes: () => made.nodes,
      ranges: () => made.ranges,
      get conf() {
        return made.conf;
      },
      dutyOf: () => ({ duty: made.duty, untilMs: 0 }),
    } as never,
    reports: {
      leaders: () => made.leaders,
      get version() {
        return made.reports;
      },
    },
    stateOf: () => made.liveness,
    leader: () => made.leader,
    term: () => made.term,
  });
}

test('while nothing changes the view is the same object, of the same version (MV1)', () => {
  const before = view.current();
  made.reports++; // A report came, and the leaders are as before.
  made.leaders = [[2, 1]];
  expect(view.current()).toBe(before);
});

test.each<{ readonly name: string; readonly change: (made: Made) => void }>([
  { name: 'a node', change: (m) => Object.assign(m, { nodes: [node(1), node(2)] }) },
  { name: 'the number of nodes', change: (m) => Object.assign(m, { nodes: m.nodes.slice(1) }) },
  { name: 'a range', change: (m) => Object.assign(m, { ranges: [] }) },
  { name: 'who is a master', change: (m) => Object.assign(m, { conf: confOf([1]) }) },
  { name: 'the duty of a node', change: (m) => Object.assign(m, { duty: 'draining' }) },
  { name: 'the liveness of a node', change: (m) => Object.assign(m, { liveness: 'down' }) },
  { name: 'the leader of a range', change: (m) => Object.assign(m, { leaders: [[2, 2]], reports: 2 }) },
  { name: 'the leader of the masters', change: (m) => Object.assign(m, { leader: 2 }) },
  { name: 'the term (MV2)', change: (m) => Object.assign(m, { term: 6 }) },
])('another version follows a change of $name', ({ change }) => {
  const before = view.current();
  change(made);
  const after = view.current();
  expect(after.version).not.toBe(before.version);
  expect(view.current()).toBe(after);
});

test('the versions of two masters differ (MV2)', () => {
  expect(viewOf(2).current().version).not.toBe(view.current().version);
});

test('a node with the role of a master that is none gets no requests as one', () => {
  made.conf = confOf([1]);
  const roles = view.current().view.nodes.map(({ descriptor }) => descriptor.roles);
  expect(roles).toEqual([['master', 'data'], ['data']]);
});
