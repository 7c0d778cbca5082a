import { InvariantError } from '@remora/base';
import { FIRST_EPOCH, type RangeDescriptor, type ReplicaDescriptor } from '@remora/protocol';
import { type ConfChange, type ConfState, changeConf, confOf, forcedChange } from '@remora/raft';
import { describe, expect, test } from 'vitest';
import {
  admitsChange,
  decodePlaces,
  descriptorAfter,
  descriptorAlone,
  encodeKnownEpoch,
  encodePlaces,
  type ReplicaPlace,
} from './membership.ts';

const CONF = confOf([11, 12, 13]);
const RANGE: RangeDescriptor = {
  rangeId: 2,
  start: new Uint8Array(0),
  end: new Uint8Array(0),
  epoch: FIRST_EPOCH,
  replicas: [11, 12, 13].map((replicaId) => ({ replicaId, nodeId: replicaId - 10, type: 'voter' })),
  revisionSource: 'range',
};

function change(
  steps: ConfChange['steps'],
  places: readonly ReplicaPlace[] = [],
  transition: ConfChange['transition'] = 'auto',
): ConfChange {
  return { steps, transition, context: encodePlaces(places) };
}

function applied(made: ConfChange, before: ConfState = CONF, range = RANGE): RangeDescriptor {
  const conf = changeConf(before, made);
  return descriptorAfter(range, { before, conf: 'invalid' in conf ? before : conf, change: made });
}

const asText = ({ replicas }: RangeDescriptor): string =>
  replicas.map(({ replicaId, nodeId, type }: ReplicaDescriptor) => `${replicaId}@${nodeId} ${type}`).join(', ');

describe('a membership change of a range', () => {
  const joins = change([{ type: 'addLearner', replica: 14 }], [{ replicaId: 14, nodeId: 4 }]);
  const rows = [
    { name: 'a learner joins', change: joins, expect: '11@1 voter, 12@2 voter, 13@3 voter, 14@4 learner' },
    {
      name: 'a voter is demoted',
      change: change([{ type: 'addLearner', replica: 12 }]),
      expect: '11@1 voter, 13@3 voter, 12@2 learner',
    },
    {
      name: 'a voter is replaced, and votes until the joint configuration is left',
      change: change(
        [
          { type: 'addVoter', replica: 14 },
          { type: 'addLearner', replica: 13 },
        ],
        [{ replicaId: 14, nodeId: 4 }],
      ),
      expect: '11@1 voter, 12@2 voter, 14@4 voter, 13@3 voter',
    },
  ];
  test.each(rows)('$name', (row) => {
    expect(admitsChange(RANGE, row.change)).toBe(true);
    const descriptor = applied(row.change);
    expect(asText(descriptor)).toBe(row.expect);
    expect(descriptor.epoch).toEqual({ confVersion: 2, version: 1 });
  });

  test('that comes to nothing leaves the descriptor as it is, its version included', () => {
    expect(applied(change([{ type: 'addVoter', replica: 11 }]))).toBe(RANGE);
    expect(applied(change([11, 12, 13].map((replica) => ({ type: 'remove', replica }))))).toBe(RANGE);
  });

  const refused = [
    { name: 'nobody said where the new replica lives', change: change([{ type: 'addLearner', replica: 14 }]) },
    {
      name: 'its node has a replica of the range already',
      change: change([{ type: 'addLearner', replica: 14 }], [{ replicaId: 14, nodeId: 3 }]),
    },
    {
      name: 'two new replicas are to live on one node',
      change: change(
        [
          { type: 'addLearner', replica: 14 },
          { type: 'addLearner', replica: 15 },
        ],
        [
          { replicaId: 14, nodeId: 4 },
          { replicaId: 15, nodeId: 4 },
        ],
      ),
    },
    { name: 'it removes a voter', change: change([{ type: 'remove', replica: 13 }]) },
    {
      name: 'it removes a voter in place of another',
      change: change(
        [
          { type: 'addVoter', replica: 14 },
          { type: 'remove', replica: 13 },
        ],
        [{ replicaId: 14, nodeId: 4 }],
      ),
    },
  ];
  test.each(refused)('is not admitted when $name', (row) => {
    expect(admitsChange(RANGE, row.change)).toBe(false);
  });

  test('removes a voter once it is demoted', () => {
    const demoted = changeConf(CONF, change([{ type: 'addLearner', replica: 13 }]));
    if ('invalid' in demoted) throw new Error('a voter can be demoted');
    const range = applied(change([{ type: 'addLearner', replica: 13 }]));
    const removal = change([{ type: 'remove', replica: 13 }]);
    expect(admitsChange(range, removal)).toBe(true);
    expect(asText(applied(removal, demoted, range))).toBe('11@1 voter, 12@2 voter');
  });

  test('does not remove who votes until a joint configuration is left', () => {
    const demotion = change([{ type: 'addLearner', replica: 13 }], [], 'jointAuto');
    expect(admitsChange(applied(demotion), change([{ type: 'remove', replica: 13 }]))).toBe(false);
  });

  test('cannot move a member: its place is what the descriptor says', () => {
    const moved = change([{ type: 'addLearner', replica: 13 }], [{ replicaId: 13, nodeId: 9 }]);
    expect(asText(applied(moved))).toBe('11@1 voter, 12@2 voter, 13@3 learner');
  });
});

test('places survive the log, and other bytes are a broken invariant', () => {
  const places = [
    { replicaId: 14, nodeId: 4 },
    { replicaId: 15, nodeId: 1_001 },
  ];
  expect(decodePlaces(encodePlaces(places))).toEqual(places);
  expect(decodePlaces(encodePlaces([]))).toEqual([]);
  expect(() => decodePlaces(Buffer.from('junk'))).toThrow(InvariantError);
});

test('a replica that goes on alone has an epoch above all that anybody knows, and is the only one (M5)', () => {
  const [ten, twenty] = [
    { confVersion: 10, version: 1 },
    { confVersion: 1, version: 20 },
  ];
  const range = { ...RANGE, epoch: ten };
  const alone = descriptorAlone(range, forcedChange(12, encodeKnownEpoch(twenty)));
  expect(asText(alone)).toBe('12@2 voter');
  expect(alone.epoch.confVersion).toBeGreaterThan(1_000_000);
  expect(alone.epoch.version).toBeGreaterThan(1_000_000 + 19);
});
