import type { RangeReport } from '@remora/protocol';
import { expect, test } from 'vitest';
import { NOW_MS, rangeInfo, schedulingBed, upNodes } from '../../test/support/scheduling-bed.ts';
import { SchedulingDirector } from './range-director.ts';
import { whyRange } from './why.ts';

const { descriptor } = rangeInfo(1, { voters: [1, 2, 3] });

function report(given: Partial<RangeReport> = {}): RangeReport {
  return {
    rangeId: 1,
    replicaId: 102,
    epoch: descriptor.epoch,
    term: 4,
    applied: 10,
    bytes: 77,
    silent: false,
    lead: {
      keys: 1,
      logEntries: 1_000,
      joint: false,
      changePending: false,
      readsPerS: 5,
      readBytesPerS: 50,
      writesPerS: 6,
      writeBytesPerS: 60,
      sizeRemark: 'it is too large',
      peers: [
        { replicaId: 101, state: 'replicate', match: 9, lagEntries: 1, lagBytes: 10, caughtUp: true, silentMs: 0 },
        { replicaId: 103, state: 'probe', match: 0, lagEntries: 10, lagBytes: 9, caughtUp: false, silentMs: 3_000 },
      ],
    },
    ...given,
  };
}

function bed() {
  const scheduling = schedulingBed({ nodes: upNodes(4) });
  return {
    scheduling,
    director: new SchedulingDirector(scheduling, {
      monotonicMs: () => NOW_MS,
      beginsAtChosen: (rangeId) => rangeId === 1,
    }),
  };
}

test('the report of a leader becomes what scheduling knows of the range', () => {
  const { scheduling, director } = bed();
  expect(director.reported({ descriptor, report: report() })).toBeUndefined();
  expect(scheduling.model.range(1)).toEqual({
    descriptor,
    leader: 2,
    term: 4,
    progress: [
      { replicaId: 101, caughtUp: true, silentSinceMs: undefined },
      { replicaId: 103, caughtUp: false, silentSinceMs: NOW_MS - 3_000 },
    ],
    joint: false,
    changePending: false,
    bytes: 77,
    readsPerS: 5,
    writesPerS: 6,
    readBytesPerS: 50,
    writeBytesPerS: 60,
    chosen: true,
    sizeRemark: 'it is too large',
  });
});

test('a silence of a moment is none: whoever is silent so shortly counts as live', () => {
  const { scheduling, director } = bed();
  const silent = (silentMs: number) => {
    const given = report();
    const peers = given.lead?.peers.map((peer) => ({ ...peer, silentMs })) ?? [];
    return given.lead === undefined ? given : { ...given, lead: { ...given.lead, peers } };
  };
  director.reported({ descriptor, report: silent(2_999) });
  expect(scheduling.model.range(1)?.progress.map(({ silentSinceMs }) => silentSinceMs)).toEqual([undefined, undefined]);
  director.reported({ descriptor, report: silent(3_000) });
  const since = NOW_MS - 3_000;
  expect(scheduling.model.range(1)?.progress.map(({ silentSinceMs }) => silentSinceMs)).toEqual([since, since]);
});

test('what a leader says of the size of its range is told to who asks why nothing happens', () => {
  const { scheduling, director } = bed();
  director.reported({ descriptor, report: report() });
  const [range] = scheduling.model.ranges();
  const lines = range === undefined ? [] : whyRange(scheduling, range, NOW_MS);
  expect(lines).toContain('its leader reports: it is too large');
});

test('the report of a follower says nothing about the range', () => {
  const { scheduling, director } = bed();
  expect(director.reported({ descriptor, report: report({ lead: undefined }) })).toBeUndefined();
  expect(scheduling.model.range(1)).toBeUndefined();
});

test('an operator is told to the leader; refused again and again, it has failed', () => {
  const { scheduling, director } = bed();
  director.reported({ descriptor, report: report() });
  const plan = { rangeId: 1, epoch: descriptor.epoch, kind: 'admin' as const, reason: 'test' };
  scheduling.request({ ...plan, steps: [{ type: 'transferLeader', nodeId: 1 }] }, NOW_MS);
  const told = { type: 'transferLeader' as const, replicaId: 101 };
  for (let i = 1; i <= 5; i++) {
    expect(director.reported({ descriptor, report: report() })).toEqual(told);
    director.ended(1, told, { orderId: i, outcome: 'underWay', reason: 'handing over' });
    director.ended(1, told, { orderId: i, outcome: 'refused', reason: 'not now' });
  }
  expect(scheduling.controller.history()).toEqual([expect.objectContaining({ status: 'failed', outcome: 'not now' })]);
  expect(director.reported({ descriptor, report: report() })).toBeUndefined();
});
