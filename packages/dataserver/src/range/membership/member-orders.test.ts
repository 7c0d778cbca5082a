import { FIRST_EPOCH, type RangeDescriptor } from '@remora/protocol';
import { type ConfState, confOf, type Group, type GroupStatus, LEAVE_JOINT, type ProgressStatus } from '@remora/raft';
import { describe, expect, test } from 'vitest';
import type { ReplicaPlace } from '../../state/reshape/membership.ts';
import { carryOut, type MemberInstruction, type OrderedReplica } from './member-orders.ts';

const CONF_VERSION = 7;

/** How replica 11, on node 1, leads the range; 12 and 13 vote too, 14 is a learner. */
interface Given {
  readonly conf?: ConfState;
  readonly ready?: boolean;
  readonly changePending?: boolean;
  /** Replicas that do not answer. */
  readonly silent?: readonly number[];
  /** Replicas that have not caught up. */
  readonly behind?: readonly number[];
  readonly confVersion?: number;
  readonly transfer?: 'transferring' | 'notVoter';
}

const CONF = confOf([11, 12, 13], [14]);
const JOINT: ConfState = { ...confOf([11, 12, 14]), votersOutgoing: [11, 12, 13], autoLeave: true };

function carried(instruction: MemberInstruction, given: Given = {}) {
  const { conf = CONF, silent = [], behind = [], changePending = false, ready = true } = given;
  const done: string[] = [];
  const voters = new Set([...conf.voters, ...conf.votersOutgoing]);
  const members = [...voters, ...conf.learners];
  const descriptor: RangeDescriptor = {
    ...{ rangeId: 2, start: new Uint8Array(0), end: new Uint8Array(0), revisionSource: 'range' },
    epoch: { ...FIRST_EPOCH, confVersion: CONF_VERSION },
    replicas: members.map((id) => ({
      replicaId: id,
      nodeId: id - 10,
      type: voters.has(id) ? ('voter' as const) : ('learner' as const),
    })),
  };
  const progress = members
    .filter((id) => id !== 11)
    .map((replica) => ({ replica, caughtUp: !behind.includes(replica) }) as ProgressStatus);
  const group = {
    ready,
    status: () => ({ replicaId: 11, conf, changePending, progress }) as Partial<GroupStatus>,
    proposeConf: (change: unknown) => {
      done.push(change === LEAVE_JOINT ? 'leave' : 'change');
      return { index: 9, term: 3 };
    },
    transferLeader: (to: number) => {
      done.push(`transfer to ${to}`);
      return given.transfer === undefined ? undefined : { refused: given.transfer };
    },
  } as unknown as Group;
  const replica: OrderedReplica = {
    ...{ group, descriptor, follows: (id) => !silent.includes(id) },
    propose: ({ steps }, places: readonly ReplicaPlace[]) => {
      const texts = steps.map(({ type, replica: id }) => `${type} ${id}`);
      done.push([...texts, ...places.map((place) => `${place.replicaId}@${place.nodeId}`)].join(', '));
      return { index: 9, term: 3 };
    },
  };
  const { confVersion = CONF_VERSION } = given;
  const { outcome, reason } = carryOut(replica, { confVersion, instruction });
  return { outcome, reason, done };
}

const voters = (promote: readonly number[], remove: readonly number[]) => ({
  ...{ type: 'changeVoters' as const, promote, remove },
});

describe('an order to the leader of a range', () => {
  const rows: readonly { name: string; order: MemberInstruction; given?: Given; does: string }[] = [
    { name: 'adds a learner', order: { type: 'addLearner', nodeId: 5, replicaId: 15 }, does: 'addLearner 15, 15@5' },
    { name: 'promotes a learner', order: voters([14], []), does: 'addVoter 14' },
    {
      name: 'replaces a voter, which stays as a learner',
      order: voters([14], [13]),
      does: 'addVoter 14, addLearner 13',
    },
    { name: 'demotes first whom it is to remove', order: voters([], [13]), does: 'addLearner 13' },
    { name: 'removes a learner', order: voters([], [14]), does: 'remove 14' },
    { name: 'removes who was demoted', order: voters([11], [14]), does: 'remove 14' },
    { name: 'demotes a voter', order: { type: 'demote', replicaId: 12 }, does: 'addLearner 12' },
    {
      name: 'demotes one that is silent',
      order: { type: 'demote', replicaId: 12 },
      given: { silent: [12] },
      does: 'addLearner 12',
    },
    {
      name: 'leaves a joint configuration that waits for that',
      order: { type: 'leaveJoint' },
      given: { conf: { ...JOINT, autoLeave: false } },
      does: 'leave',
    },
    { name: 'hands over', order: { type: 'transferLeader', replicaId: 12 }, does: 'transfer to 12' },
  ];
  test.each(rows)('$name, if it is not told too late', ({ order, given, does }) => {
    expect(carried(order, given)).toMatchObject({ outcome: 'underWay', done: [does] });
    const late = carried(order, { ...given, confVersion: CONF_VERSION - 1 });
    expect(late).toMatchObject({ outcome: 'underWay', done: [] });
    expect(late.reason).toContain('version 6 of the membership, which has 7');
    expect(carried(order, { ...given, ready: false })).toMatchObject({ outcome: 'underWay', done: [] });
  });

  const done: readonly { name: string; order: MemberInstruction; given?: Given }[] = [
    { name: 'the learner is there', order: { type: 'addLearner', nodeId: 4, replicaId: 14 } },
    { name: 'the learner was promoted since', order: { type: 'addLearner', nodeId: 3, replicaId: 13 } },
    { name: 'voters and learners are as they shall be', order: voters([12], [99]) },
    { name: 'it is a learner', order: { type: 'demote', replicaId: 14 } },
    { name: 'nothing is joint', order: { type: 'leaveJoint' } },
    { name: 'it leads', order: { type: 'transferLeader', replicaId: 11 } },
  ];
  test.each(done)('is done, whenever it was meant, when $name', ({ order, given }) => {
    expect(carried(order, { ...given, confVersion: 3 })).toEqual({ outcome: 'done', reason: '', done: [] });
  });

  const waits: readonly { name: string; order: MemberInstruction; given: Given; does?: string; says: string }[] = [
    {
      name: 'another change is not applied',
      order: voters([14], []),
      given: { changePending: true },
      says: 'another change',
    },
    { name: 'the configuration is joint', order: voters([], [14]), given: { conf: JOINT }, says: 'being left' },
    {
      name: 'the leader leaves it by itself',
      order: { type: 'leaveJoint' },
      given: { conf: JOINT },
      says: 'being left',
    },
    { name: 'the learner lags', order: voters([14], [13]), given: { behind: [14] }, says: '14 has not caught up' },
    {
      name: 'the quorum would not follow',
      order: { type: 'demote', replicaId: 12 },
      given: { silent: [13] },
      says: 'only 1 of the voters 11, 13 would follow',
    },
    {
      name: 'the target lags',
      order: { type: 'transferLeader', replicaId: 12 },
      given: { behind: [12] },
      says: '12 lags behind',
    },
    {
      name: 'it hands over to another',
      order: { type: 'transferLeader', replicaId: 12 },
      given: { transfer: 'transferring' },
      does: 'transfer to 12',
      says: 'handed over',
    },
  ];
  test.each(waits)('waits while $name', ({ order, given, does, says }) => {
    const result = carried(order, given);
    expect(result).toMatchObject({ outcome: 'underWay', done: does === undefined ? [] : [does] });
    expect(result.reason).toContain(says);
  });

  const refused: readonly { name: string; order: MemberInstruction; given?: Given; says: string }[] = [
    {
      name: 'the node has another replica',
      order: { type: 'addLearner', nodeId: 3, replicaId: 15 },
      says: 'node 3 has replica 13',
    },
    {
      name: 'the replica lives elsewhere',
      order: { type: 'addLearner', nodeId: 5, replicaId: 13 },
      says: 'replica 13 lives on node 3',
    },
    { name: 'nobody knows the learner', order: voters([19], []), says: '19 is no member' },
    { name: 'nobody knows the voter', order: { type: 'demote', replicaId: 19 }, says: '19 is no member' },
    { name: 'the leader would be removed', order: voters([14], [11]), says: '11 leads the range' },
    { name: 'the leader would be demoted', order: { type: 'demote', replicaId: 11 }, says: '11 leads the range' },
    { name: 'the target is a learner', order: { type: 'transferLeader', replicaId: 14 }, says: '14 is no voter' },
    {
      name: 'the target is none by now',
      order: { type: 'transferLeader', replicaId: 12 },
      given: { transfer: 'notVoter' },
      says: 'does not allow it',
    },
  ];
  test.each(refused)('is refused when $name', ({ order, given, says }) => {
    const result = carried(order, given);
    expect(result.outcome).toBe('refused');
    expect(result.reason).toContain(says);
  });
});
