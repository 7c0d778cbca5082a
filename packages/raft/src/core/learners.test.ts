import { describe, expect, test } from 'vitest';
import {
  ack,
  answerHeartbeat,
  append,
  ELECTION_TICKS,
  makeCore,
  makeLeader,
  ofType,
  progressOf,
  propose,
  reject,
  run,
  settle,
  tick,
  tickUntilCampaign,
} from '../../test/support/core/core-kit.ts';
import { type ConfStep, confChange } from './membership/conf-change.ts';
import { confOf } from './membership/membership.ts';
import type { RaftCore } from './raft.ts';

const add = (replica: number): ConfStep => ({ type: 'addVoter', replica });

describe('learners', () => {
  test('are sent everything and count for nothing', () => {
    const core = makeLeader({ learners: [4], silent: [2, 3] });
    ack(core, 4);
    expect(core.commit).toBe(0);
    tick(core, ELECTION_TICKS);
    answerHeartbeat(core, 4);
    tick(core, ELECTION_TICKS);
    expect(core.role).toBe('follower'); // CheckQuorum
  });

  test('do not campaign, nor when told to, but answer those who ask for votes (E5)', () => {
    const core = makeCore({ id: 4, learners: [4] });
    expect(tickUntilCampaign(core)).toEqual([]);
    append(core, { from: 1, term: 1, prev: [0, 0] });
    run(core);
    core.step({ type: 'timeoutNow', from: 1, to: 4, term: 1 });
    expect(run(core)).toEqual([]);
    core.step({ type: 'vote', from: 2, to: 4, term: 2, lastIndex: 5, lastTerm: 1, force: true });
    expect(run(core)).toMatchObject([{ type: 'voteResponse', reject: false }]);
  });

  test('campaign and count once they are promoted', () => {
    const core = makeLeader({ voters: [1, 2], learners: [3] });
    core.proposeConf(confChange([add(3)]));
    settle(core, [2, 3]);
    expect(progressOf(core, 3)).toMatchObject({ learner: false });
    propose(core, 'a');
    run(core);
    ack(core, 3);
    expect(core.commit).toBe(3);

    const promoted = makeCore({ id: 4, learners: [4] });
    promoted.applyConf(confOf([1, 2, 3, 4]));
    expect(ofType(tickUntilCampaign(promoted), 'preVote').map((m) => m.to)).toEqual([1, 2, 3]);
  });

  test('a new member gets time to answer before the quorum is checked', () => {
    const core = makeLeader({ voters: [1], silent: [] });
    core.proposeConf(confChange([add(2)]));
    run(core);
    expect(core.conf).toEqual(confOf([1, 2]));
    tick(core, ELECTION_TICKS);
    expect(core.role).toBe('leader');
    tick(core, ELECTION_TICKS);
    expect(core.role).toBe('follower');
  });
});

describe('caught up (design §4)', () => {
  /**
   * A leader with `length` entries behind its snapshot, and a learner 4 that has acknowledged all but `lag` of them.
   */
  function lagging(length: number, lag: number, config = {}): RaftCore {
    const core = makeLeader({
      learners: [4],
      config: { maxUncommittedBytes: 1e9, maxInflightMessages: 1e6, maxInflightBytes: 1e9, ...config },
    });
    for (let i = 1; i < length; i++) propose(core, 'a');
    run(core);
    ack(core, 4, length - lag);
    return core;
  }

  test.each([
    { length: 400, lag: 399, expect: true },
    { length: 1000, lag: 499, expect: true },
    { length: 1000, lag: 500, expect: false },
    { length: 10_001, lag: 501, expect: false },
    { length: 10_041, lag: 501, expect: true },
  ])('a learner that lags $lag of $length entries: $expect', ({ length, lag, expect: expected }) => {
    const core = lagging(length, lag);
    expect(progressOf(core, 4)).toMatchObject({ lagEntries: lag, caughtUp: expected });
  });

  test('the limits are options', () => {
    expect(progressOf(lagging(100, 10, { caughtUpEntries: 10, caughtUpPercent: 5 }), 4)?.caughtUp).toBe(false);
    expect(progressOf(lagging(100, 9, { caughtUpEntries: 10, caughtUpPercent: 5 }), 4)?.caughtUp).toBe(true);
    expect(progressOf(lagging(100, 10, { caughtUpEntries: 10, caughtUpPercent: 11 }), 4)?.caughtUp).toBe(true);
  });

  test('a learner that was never heard from, has gone silent, or waits for a snapshot, is not (traps 3)', () => {
    const core = makeLeader({ learners: [4], silent: [4] });
    expect(progressOf(core, 4)).toMatchObject({ lagEntries: 1, caughtUp: false });
    ack(core, 4);
    expect(progressOf(core, 4)).toMatchObject({ lagEntries: 0, caughtUp: true });
    tick(core, ELECTION_TICKS);
    // The quorum check has just been: whoever answers all the time has not answered since.
    expect(progressOf(core, 4)).toMatchObject({ active: false, heardLately: true, caughtUp: true });
    answerHeartbeat(core, 2);
    tick(core, ELECTION_TICKS);
    expect(progressOf(core, 4)).toMatchObject({ lagEntries: 0, heardLately: false, caughtUp: false });
    answerHeartbeat(core, 4);
    expect(progressOf(core, 4)).toMatchObject({ caughtUp: true });

    const compacted = makeLeader({
      start: { index: 5, term: 1 },
      applied: 5,
      hardState: { term: 1, vote: 0, commit: 5 },
      learners: [4],
      silent: [4],
    });
    reject(compacted, 4, { index: 5, hint: [0, 0] });
    run(compacted);
    expect(progressOf(compacted, 4)).toMatchObject({ state: 'snapshot', lagEntries: 6, caughtUp: false });
  });
});
