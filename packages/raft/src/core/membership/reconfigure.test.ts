import { describe, expect, test } from 'vitest';
import {
  ack,
  answerHeartbeat,
  append,
  appendsTo,
  apply,
  ELECTION_TICKS,
  HEARTBEAT_TICKS,
  heartbeat,
  makeCore,
  makeLeader,
  ofType,
  progressOf,
  propose,
  reject,
  run,
  settle,
  take,
  tick,
  tickUntilCampaign,
} from '../../../test/support/core/core-kit.ts';
import type { Entry } from '../types.ts';
import { type ConfStep, confChange, LEAVE_JOINT } from './conf-change.ts';
import { encodeConfChange } from './conf-change-codec.ts';
import { confOf } from './membership.ts';

const add = (replica: number): ConfStep => ({ type: 'addVoter', replica });
const learn = (replica: number): ConfStep => ({ type: 'addLearner', replica });
const remove = (replica: number): ConfStep => ({ type: 'remove', replica });

describe('one change at a time (N1; traps 1, 2)', () => {
  test('none before an entry of the own term is committed', () => {
    const fresh = makeLeader({ silent: [2, 3] });
    expect(fresh.proposeConf(confChange([learn(4)]))).toEqual({ refused: 'noOwnTermCommit' });
    settle(fresh, [2]);
    expect(fresh.proposeConf(confChange([learn(4)]))).toMatchObject({ index: 2 });
  });

  test('none while the one before it is not applied, committed or not', () => {
    const core = makeLeader();
    expect(core.proposeConf(confChange([learn(4)]))).toMatchObject({ index: 2 });
    expect(core.proposeConf(confChange([learn(5)]))).toEqual({ refused: 'confPending' });
    run(core);
    ack(core, 2);
    expect(core.commit).toBe(2);
    expect(core.proposeConf(confChange([learn(5)]))).toEqual({ refused: 'confPending' });
    run(core); // applied
    expect(core.proposeConf(confChange([learn(5)]))).toMatchObject({ index: 3 });
  });

  test('a new leader waits for all that it was elected with: there may be a change among it', () => {
    const core = makeLeader({
      hardState: { term: 1, vote: 0, commit: 0 },
      entries: [{ index: 1, term: 1, type: 'conf', data: new Uint8Array(0) }],
      silent: [2, 3],
    });
    ack(core, 2);
    const { committed } = take(core);
    expect(core.leaderReady).toBe(true);
    expect(core.proposeConf(confChange([learn(4)]))).toEqual({ refused: 'confPending' });
    for (const entry of committed) apply(core, entry);
    expect(core.proposeConf(confChange([learn(4)]))).toMatchObject({ index: 3 });
  });

  test('an impossible change is refused with its reason, and a follower refuses all', () => {
    const core = makeLeader();
    expect(core.proposeConf(LEAVE_JOINT)).toEqual({ refused: 'confInvalid', problem: 'notJoint' });
    expect(core.proposeConf(confChange([remove(1), remove(2), remove(3)]))).toEqual({
      refused: 'confInvalid',
      problem: 'noVoters',
    });
    expect(core.status().lastIndex).toBe(1);
    expect(makeCore().proposeConf(confChange([learn(4)]))).toEqual({ refused: 'notLeader' });
  });

  test('while joint nothing but the leave is taken', () => {
    const core = makeLeader();
    core.proposeConf(confChange([add(4)], 'joint'));
    settle(core, [2]);
    expect(core.conf).toEqual({ ...confOf([1, 2, 3, 4]), votersOutgoing: [1, 2, 3] });
    expect(core.proposeConf(confChange([learn(5)]))).toEqual({ refused: 'confInvalid', problem: 'joint' });
    expect(core.proposeConf(LEAVE_JOINT)).toMatchObject({ index: 3 });
    settle(core, [2, 4]);
    expect(core.conf).toEqual(confOf([1, 2, 3, 4]));
  });
});

describe('a joint configuration that is left automatically (N3)', () => {
  const auto = { ...confOf([1, 2, 4]), votersOutgoing: [1, 2, 3], autoLeave: true };

  test('its leader appends the leave once it is applied, and once only', () => {
    const core = makeLeader();
    core.proposeConf(confChange([add(4), remove(3)]));
    settle(core, [2]);
    expect(core.conf).toEqual(auto);
    propose(core, 'a');
    tick(core, 2 * HEARTBEAT_TICKS);
    run(core);
    const { lastIndex } = core.status();
    expect(lastIndex).toBe(4); // the change, the leave, 'a'
    settle(core, [2, 4]);
    expect(core.conf).toEqual(confOf([1, 2, 4]));
    expect(core.status().lastIndex).toBe(4);
  });

  test('it needs both majorities until the leave is applied', () => {
    const core = makeLeader();
    core.proposeConf(confChange([add(4), add(5), remove(2), remove(3)]));
    settle(core, [2]);
    run(core);
    for (const id of [2, 3]) ack(core, id);
    expect(core.commit).toBe(2);
    ack(core, 4);
    expect(core.commit).toBe(3);
  });

  test('the leave is appended whatever waits in the queue', () => {
    const core = makeLeader({ config: { maxUncommittedBytes: 100 } });
    core.proposeConf(confChange([add(4), remove(3)]));
    core.propose(Buffer.alloc(40));
    run(core);
    ack(core, 2, 2);
    core.propose(Buffer.alloc(1));
    expect(core.propose(Buffer.alloc(40))).toEqual({ refused: 'queueFull' });
    run(core);
    expect(core.conf).toEqual(auto);
    expect(core.status().lastIndex).toBe(5);
    settle(core, [2, 4]);
    expect(core.conf).toEqual(confOf([1, 2, 4]));
  });

  test('a new leader that finds itself in one leaves it, but not before an entry of its own term is committed', () => {
    const core = makeLeader({ conf: auto, silent: [2, 4, 3] });
    tick(core, 1);
    expect(core.status().lastIndex).toBe(1);
    settle(core, [2]);
    expect(core.status().lastIndex).toBe(2);
    settle(core, [2]);
    expect(core.conf).toEqual(confOf([1, 2, 4]));
  });

  test('a new leader that holds the leave of the one before it appends no other', () => {
    const leave: Entry = { index: 1, term: 1, type: 'conf', data: new Uint8Array(0) };
    const core = makeLeader({
      conf: auto,
      hardState: { term: 1, vote: 0, commit: 0 },
      entries: [leave],
    });
    settle(core, [2]);
    expect(core.conf).toEqual(confOf([1, 2, 4]));
    expect(core.status().lastIndex).toBe(2);
  });

  test('while leadership moves the leave waits, and comes when the transfer is given up', () => {
    const core = makeLeader();
    core.proposeConf(confChange([add(4), remove(3)]));
    run(core);
    ack(core, 2);
    core.transferLeader(2);
    run(core);
    expect(core.conf).toEqual(auto);
    expect(core.status().lastIndex).toBe(2);
    answerHeartbeat(core, 4);
    tick(core, ELECTION_TICKS);
    expect(core.status()).toMatchObject({ role: 'leader', transferee: 0, lastIndex: 3 });
  });

  test('a leader of the outgoing side alone leads until the leave is applied, then steps down', () => {
    const core = makeLeader();
    core.proposeConf(confChange([add(4), remove(1)]));
    settle(core, [2]);
    expect(core).toMatchObject({ role: 'leader', joint: true });
    run(core);
    ack(core, 2);
    expect(core.commit).toBe(2); // of {2, 3, 4} only one holds it
    ack(core, 4);
    run(core);
    expect(core).toMatchObject({ role: 'follower', conf: confOf([2, 3, 4]) });
  });

  test('an explicit joint configuration is not left by itself', () => {
    const core = makeLeader();
    core.proposeConf(confChange([add(4), remove(3)], 'joint'));
    settle(core, [2]);
    tick(core, ELECTION_TICKS - 1);
    expect(core.status().lastIndex).toBe(2);
  });
});

describe('the end of a membership (N4)', () => {
  test('a leader that removes or demotes itself steps down when that is applied, not before', () => {
    for (const step of [remove(1), learn(1)]) {
      const core = makeLeader();
      core.proposeConf(confChange([step]));
      run(core);
      ack(core, 2);
      const { committed } = take(core);
      expect(core.role).toBe('leader');
      for (const entry of committed) apply(core, entry);
      expect(core).toMatchObject({ role: 'follower', leader: 0 });
      run(core);
      expect(tickUntilCampaign(core)).toEqual([]);
    }
  });

  test('the last words of a leader that goes tell the others what is committed', () => {
    const core = makeLeader({ voters: [1, 2] });
    core.proposeConf(confChange([remove(1)]));
    run(core);
    ack(core, 2);
    expect(appendsTo(run(core), 2).at(-1)).toMatchObject({ entries: [], commit: 2 });
  });

  test('a replica that is removed hears that this is committed, then nothing more', () => {
    const core = makeLeader();
    core.proposeConf(confChange([remove(3)]));
    run(core);
    ack(core, 2);
    expect(appendsTo(run(core), 3).at(-1)).toMatchObject({ entries: [], commit: 2 });
    expect(progressOf(core, 3)).toBeUndefined();
    propose(core, 'a');
    tick(core, HEARTBEAT_TICKS);
    expect(run(core).filter((m) => m.to === 3)).toEqual([]);
  });

  test('a removed follower does not campaign', () => {
    const core = makeCore({ id: 3 });
    heartbeat(core, 1, 1);
    run(core);
    core.applyConf(confOf([1, 2]));
    expect(tickUntilCampaign(core)).toEqual([]);
  });

  test('a transfer to a replica that is removed or demoted is given up', () => {
    for (const step of [remove(3), learn(3)]) {
      const core = makeLeader({ silent: [3] });
      core.proposeConf(confChange([step]));
      run(core);
      expect(core.transferLeader(3)).toBeUndefined();
      ack(core, 2);
      run(core);
      expect(core.status().transferee).toBe(0);
      expect(core.propose(Buffer.from('a'))).toMatchObject({ index: 3 });
    }
  });

  test('a voter that was just promoted takes over as soon as it has applied that', () => {
    const core = makeLeader({ learners: [4] });
    core.proposeConf(confChange([add(4)]));
    settle(core, [2, 3, 4]);
    expect(core.transferLeader(4)).toBeUndefined();
    expect(ofType(run(core), 'timeoutNow')).toHaveLength(1);
    tick(core, HEARTBEAT_TICKS);
    expect(ofType(run(core), 'timeoutNow')).toMatchObject([{ to: 4 }]);
    tick(core, ELECTION_TICKS); // given up
    run(core);
    tick(core, HEARTBEAT_TICKS);
    expect(ofType(run(core), 'timeoutNow')).toEqual([]);

    const target = makeCore({ id: 4, learners: [4] });
    const promotion: Entry = { index: 1, term: 1, type: 'conf', data: encodeConfChange(confChange([add(4)])) };
    append(target, { from: 1, term: 1, prev: [0, 0], entries: [promotion], commit: 1 });
    const { committed, marks } = take(target);
    for (const mark of marks) target.persisted(mark);
    target.step({ type: 'timeoutNow', from: 1, to: 4, term: 1 });
    expect(target.role).toBe('follower');
    for (const entry of committed) apply(target, entry);
    target.step({ type: 'timeoutNow', from: 1, to: 4, term: 1 });
    expect(target.role).toBe('candidate');
  });

  test('leadership does not go to a replica of the outgoing side alone', () => {
    const core = makeLeader();
    core.proposeConf(confChange([add(4), remove(3)], 'joint'));
    settle(core, [2, 3]);
    expect(core.transferLeader(3)).toEqual({ refused: 'notVoter' });
    expect(core.transferLeader(2)).toBeUndefined();
  });

  test('a snapshot that is to be asked for is not, when its receiver is removed first', () => {
    for (const removed of [false, true]) {
      const core = makeLeader({ learners: [4], silent: [4] });
      propose(core, 'a');
      settle(core, [2]);
      answerHeartbeat(core, 4);
      run(core);
      core.compactTo(2);
      tick(core, HEARTBEAT_TICKS);
      if (removed) core.applyConf(confOf([1, 2, 3]));
      expect(take(core).readies.flatMap((ready) => ready.snapshotsWanted)).toEqual(removed ? [] : [4]);
    }
  });

  test('a snapshot under way to a replica that is removed is forgotten: under a new id it would start afresh', () => {
    const core = makeLeader({
      start: { index: 5, term: 1 },
      applied: 5,
      hardState: { term: 1, vote: 0, commit: 5 },
      learners: [4],
      silent: [4],
    });
    const wanted = () => take(core).readies.flatMap((ready) => ready.snapshotsWanted);
    reject(core, 4, { index: 5, hint: [0, 0] });
    expect(wanted()).toEqual([4]);
    core.applyConf(confOf([1, 2, 3]));
    core.applyConf(confOf([1, 2, 3], [4]));
    expect(wanted()).toEqual([]);
    take(core);
    reject(core, 4, { index: core.status().lastIndex, hint: [0, 0] });
    expect(wanted()).toEqual([4]);
  });
});
