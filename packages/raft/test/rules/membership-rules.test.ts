// Traps 1 to 3 and design §4 on membership, in one core.
import { describe, expect, test } from 'vitest';
import { changeConf, confChange } from '../../src/core/membership/conf-change.ts';
import { confOf } from '../../src/core/membership/membership.ts';
import type { RaftCore } from '../../src/core/raft.ts';
import type { ConfState } from '../../src/core/types.ts';
import {
  ack,
  answerHeartbeat,
  ELECTION_TICKS,
  makeCore,
  makeLeader,
  progressOf,
  propose,
  reject,
  run,
  take,
  tick,
} from '../support/core/core-kit.ts';

const add = (replica: number) => ({ type: 'addVoter', replica }) as const;
const learn = (replica: number) => ({ type: 'addLearner', replica }) as const;
const remove = (replica: number) => ({ type: 'remove', replica }) as const;

/** Commits what is in the log, without applying it. */
function commitAll(core: RaftCore): void {
  const { marks } = take(core);
  for (const mark of marks) core.persisted(mark);
  ack(core, 2);
  take(core);
}

const joint: ConfState = { ...confOf([1, 4, 5]), votersOutgoing: [1, 2, 3] };

describe('one change at a time', () => {
  test('trap 1: no membership change before an entry of the own term is committed', () => {
    const core = makeLeader({ silent: [2, 3] });
    expect(core.proposeConf(confChange([add(4)]))).toEqual({ refused: 'noOwnTermCommit' });
    ack(core, 2);
    expect(core.proposeConf(confChange([add(4)]))).toMatchObject({ index: 2 });
  });

  test('trap 2: no membership change while another is not applied, committed or not', () => {
    const core = makeLeader();
    expect(core.proposeConf(confChange([add(4)]))).toMatchObject({ index: 2 });
    expect(core.proposeConf(confChange([add(5)]))).toEqual({ refused: 'confPending' });
    commitAll(core);
    expect(core.commit).toBe(2);
    expect(core.proposeConf(confChange([add(5)]))).toEqual({ refused: 'confPending' });
    core.applyConf(confOf([1, 2, 3, 4]));
    core.appliedTo(2);
    expect(core.proposeConf(confChange([add(5)]))).toMatchObject({ index: 3 });
  });

  test('trap 2: the only voter does not hurry over a membership change in its log, committed or not', () => {
    const restarted = (entry: 'conf' | 'normal'): RaftCore =>
      makeCore({
        voters: [1],
        entries: [{ index: 1, term: 1, type: entry, data: new Uint8Array(0) }],
        hardState: { term: 1, vote: 1, commit: 0 },
        restarted: true,
      });
    const [changed, same] = [restarted('conf'), restarted('normal')];
    for (const core of [changed, same]) tick(core, 1);
    expect([changed.role, same.role]).toEqual(['follower', 'candidate']);
  });

  test('trap 2: nobody campaigns over a membership change that is committed and not applied', () => {
    const core = makeCore({
      entries: [{ index: 1, term: 1, type: 'conf', data: new Uint8Array(0) }],
      hardState: { term: 1, vote: 0, commit: 1 },
    });
    take(core);
    tick(core, 4 * ELECTION_TICKS);
    expect(core.role).toBe('follower');
    core.appliedTo(1);
    tick(core, 2 * ELECTION_TICKS);
    expect(core.role).toBe('preCandidate');
  });

  test('trap 2: more than one voter changes through a joint configuration only', () => {
    expect(changeConf(confOf([1, 2, 3]), confChange([add(4), remove(3)]))).toMatchObject({
      voters: [1, 2, 4],
      votersOutgoing: [1, 2, 3],
    });
    expect(changeConf(confOf([1, 2, 3]), confChange([add(4), learn(5)]))).toMatchObject({
      voters: [1, 2, 3, 4],
      votersOutgoing: [],
    });
  });

  test('design §4: while joint, a commit needs a majority of both halves', () => {
    const core = makeLeader();
    core.applyConf(joint);
    run(core);
    propose(core, 'a');
    run(core);
    ack(core, 2);
    ack(core, 3);
    expect(core.commit).toBe(1); // 1, 2, 3: all of the old half, one of the new
    ack(core, 4);
    expect(core.commit).toBe(2);
  });

  test('design §4: while joint, an election needs a majority of both halves', () => {
    const core = makeCore({ config: { preVote: false }, conf: joint });
    for (let i = 0; i < 2 * ELECTION_TICKS && core.role === 'follower'; i++) core.tick();
    run(core);
    for (const from of [2, 3]) core.step({ type: 'voteResponse', from, to: 1, term: 1, reject: false });
    expect(core.role).toBe('candidate');
    core.step({ type: 'voteResponse', from: 5, to: 1, term: 1, reject: false });
    expect(core.role).toBe('leader');
  });

  test('design §4: a leader whose removal is applied steps down', () => {
    const core = makeLeader();
    core.applyConf(confOf([2, 3]));
    expect(core.role).toBe('follower');
    tick(core, 4 * ELECTION_TICKS);
    expect(core.role).toBe('follower');
  });
});

describe('learners', () => {
  test('trap 3: a learner counts as caught up only when it lags little', () => {
    const core = makeLeader({ learners: [4], silent: [4], config: { caughtUpEntries: 2, caughtUpPercent: 0 } });
    for (let i = 0; i < 5; i++) propose(core, 'x');
    run(core);
    ack(core, 4, 3);
    expect(progressOf(core, 4)).toMatchObject({ lagEntries: 3, caughtUp: false });
    ack(core, 4, 5);
    expect(progressOf(core, 4)).toMatchObject({ lagEntries: 1, caughtUp: true });
  });

  test('design §4: a learner neither counts for a commit nor keeps a leader up, and does not campaign', () => {
    const core = makeLeader({ voters: [1, 2, 3], learners: [4, 5] });
    propose(core, 'a');
    const { marks } = take(core);
    ack(core, 4);
    ack(core, 5);
    for (const mark of marks) core.persisted(mark);
    expect(core.commit).toBe(1);
    tick(core, ELECTION_TICKS);
    for (let i = 0; i < ELECTION_TICKS; i++) {
      core.tick();
      ack(core, 4, 1);
      ack(core, 5, 1);
    }
    expect(core.role).toBe('follower');
    const learner = makeCore({ id: 4, voters: [1, 2, 3], learners: [4] });
    tick(learner, 4 * ELECTION_TICKS);
    expect(learner.role).toBe('follower');
  });

  test('trap 3: a follower gets one snapshot at a time', () => {
    const core = makeLeader({ silent: [3] });
    commitAndCut(core, 2);
    const heard = () => answerHeartbeat(core, 3);
    heard();
    expect(take(core).readies.flatMap((ready) => ready.snapshotsWanted)).toEqual([3]);
    // Meanwhile it turns out to hold what is needed, and then to lack what is cut since: the first is still under way.
    ack(core, 3, 2);
    run(core);
    commitAndCut(core, 3);
    reject(core, 3, { index: 3, hint: [2, 0] });
    expect(take(core).readies.flatMap((ready) => ready.snapshotsWanted)).toEqual([]);
    expect(progressOf(core, 3)?.state).toBe('snapshot');
    core.reportSnapshot(3, false, 0);
    heard();
    expect(take(core).readies.flatMap((ready) => ready.snapshotsWanted)).toEqual([3]);
  });
});

/** Commits one entry more, by the acknowledgement of replica 2, and cuts the log behind it. */
function commitAndCut(core: RaftCore, index: number): void {
  propose(core, 'x');
  run(core);
  ack(core, 2);
  run(core);
  core.compactTo(index);
}
