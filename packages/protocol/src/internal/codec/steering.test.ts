import { createHash } from 'node:crypto';
import { ServiceError } from '@remora/base';
import { describe, expect, test } from 'vitest';
import type { Method } from '../../rpc/rpc.ts';
import type { OperatorInfo, RangeChange, SchedulerInfo } from '../steering-api.ts';
import {
  masterCancelOperator,
  masterOperators,
  masterPauseScheduler,
  masterRebalance,
  masterScatter,
  masterSchedulers,
  masterSetNodeDuty,
  masterSteerRange,
  masterWhy,
} from '../steering-methods.ts';
import { packVersioned, unpackVersioned } from './wire.ts';

const EPOCH = { confVersion: 4, version: 2 };
const OPERATOR: OperatorInfo = {
  ...{ operatorId: 3_000_001, rangeId: 7, kind: 'admin', status: 'started' },
  ...{ reason: 'requested: move', steps: ['add a learner on node 4', 'promote node 4 and remove node 1'] },
  ...{ step: 1, ageMs: 1_500.5, endedMs: -1, outcome: '' },
};
const SCHEDULER: SchedulerInfo = {
  ...{ name: 'bytes', description: 'spreads stored bytes', pausedMs: -1, last: 'nothing to do' },
  settings: ['bytes-gap-min'],
};
const CHANGES: readonly RangeChange[] = [
  { type: 'move', from: 1, to: 4 },
  { type: 'addReplica', nodeId: 4 },
  { type: 'removeReplica', nodeId: 4 },
  { type: 'split', at: Buffer.from([3, 0x6d]) },
  { type: 'split', at: undefined },
  { type: 'merge', source: 8 },
];

interface Case {
  readonly name: string;
  readonly samples: readonly unknown[];
  readonly encode: (value: unknown) => unknown;
  readonly decode: (raw: unknown) => unknown;
}

/** What a method is asked and answers, as two cases. */
function methodCases<Request, Reply>(
  method: Method<Request, Reply>,
  requests: readonly NoInfer<Request>[],
  replies: readonly NoInfer<Reply>[],
): readonly Case[] {
  return [
    {
      name: `requests of ${method.name}`,
      samples: requests,
      encode: (value) => method.encodeRequest(value as Request),
      decode: method.decodeRequest,
    },
    {
      name: `replies of ${method.name}`,
      samples: replies,
      encode: (value) => method.encodeReply(value as Reply),
      decode: method.decodeReply,
    },
  ];
}

const steps = CHANGES.map((change) => ({ rangeId: 7, epoch: EPOCH, change }));
const planned = { rangeId: 7, kind: 'balanceLeaders', reason: 'node 1 leads more', steps: ['transfer the leader'] };
const CASES: readonly Case[] = [
  ...methodCases(masterSteerRange, steps, [OPERATOR]),
  ...methodCases(masterScatter, [{ start: Buffer.of(), end: Buffer.from([3]) }], [{ ranges: 12 }]),
  ...methodCases(masterRebalance, [{ dryRun: true }], [{ changes: [planned], schedulers: [SCHEDULER] }]),
  ...methodCases(masterOperators, [{ ended: true, rangeId: 0, limit: 1_000 }], [[OPERATOR], []]),
  ...methodCases(masterCancelOperator, [{ operatorId: 3 }], [{ ...OPERATOR, status: 'cancelled', endedMs: 0 }]),
  ...methodCases(masterSchedulers, [undefined], [[SCHEDULER]]),
  ...methodCases(masterPauseScheduler, [{ name: 'bytes', forMs: 60_000 }], [[{ ...SCHEDULER, pausedMs: 59_999.5 }]]),
  ...methodCases(masterSetNodeDuty, [{ nodeId: 4, duty: 'maintenance', forMs: 3_600_000 }], [undefined]),
  ...methodCases(masterWhy, [{ rangeId: 0, nodeId: 4 }], [{ lines: ['it has 3 replicas'] }]),
];

const overTheWire = (raw: unknown): unknown => unpackVersioned(1, packVersioned(1, raw), 'sample');

describe('messages that steer a cluster', () => {
  test.each(CASES)('$name survive the wire', ({ samples, encode, decode }) => {
    for (const sample of samples) expect(decode(overTheWire(encode(sample)))).toEqual(sample);
  });

  test('are what they were: change them only together with the version of calls', () => {
    const hash = createHash('sha256');
    for (const { samples, encode } of CASES)
      for (const sample of samples) hash.update(packVersioned(1, encode(sample)));
    expect(hash.digest('hex')).toBe('74059598b4e7afb7cf3f3aa019f7c1bfa8ac746306b1789670bad5716e1b1dec');
  });

  test.each(CASES)('a field of $name that is missing, added or damaged is INVALID_ARGUMENT', (one) => {
    for (const sample of one.samples) {
      const raw = overTheWire(one.encode(sample));
      if (!Array.isArray(raw)) continue;
      for (const damaged of damages(raw)) expectDecodesOrRefuses(() => one.decode(damaged));
    }
  });

  test.each([0, 1_001])('%i operators at most are refused', (limit) => {
    expect(() => masterOperators.decodeRequest([false, 0, limit])).toThrow(ServiceError);
  });
});

function* damages(raw: readonly unknown[]): Generator<unknown> {
  yield null;
  yield raw.slice(1);
  yield [...raw, 1];
  for (let i = 0; i < raw.length; i++) {
    for (const wrong of [{}, -5, [[]]]) yield raw.with(i, wrong);
    const field = raw[i];
    if (Array.isArray(field)) for (const damaged of damages(field)) yield raw.with(i, damaged);
  }
}

function expectDecodesOrRefuses(decode: () => unknown): void {
  try {
    decode();
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'INVALID_ARGUMENT') throw error;
  }
}
