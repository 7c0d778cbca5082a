import { describe, expect, test } from 'vitest';
import { entries, makeCore, makeLeader, ofType, run, tickUntilCampaign } from '../../test/support/core/core-kit.ts';
import { type ConfStep, confChange } from './membership/conf-change.ts';
import { encodeConfChange } from './membership/conf-change-codec.ts';
import { confOf, EMPTY_CONF } from './membership/membership.ts';
import type { RaftCore } from './raft.ts';

const add = (replica: number): ConfStep => ({ type: 'addVoter', replica });

describe('an election in a joint configuration', () => {
  const joint = { ...EMPTY_CONF, voters: [1, 4, 5], votersOutgoing: [1, 2, 3] };
  const grant = (core: RaftCore, from: number, type: 'preVoteResponse' | 'voteResponse') =>
    core.step({ type, from, to: core.id, term: type === 'voteResponse' ? core.term : core.term + 1, reject: false });

  test('needs both majorities, for the pre-vote and for the vote', () => {
    const core = makeCore({ conf: joint });
    tickUntilCampaign(core);
    for (const from of [4, 5]) grant(core, from, 'preVoteResponse');
    run(core);
    expect(core.role).toBe('preCandidate');
    grant(core, 2, 'preVoteResponse');
    run(core);
    expect(core.role).toBe('candidate');
    for (const from of [2, 3]) grant(core, from, 'voteResponse');
    expect(core.role).toBe('candidate');
    grant(core, 5, 'voteResponse');
    expect(core.role).toBe('leader');
  });

  test('is lost when one side has refused', () => {
    const core = makeCore({ conf: joint });
    tickUntilCampaign(core);
    for (const from of [4, 5]) core.step({ type: 'preVoteResponse', from, to: 1, term: core.term, reject: true });
    expect(core.role).toBe('follower');
  });

  // openraft #1796: one side has the longer log, the other the newer term; each refuses the other for ever, unless
  // the refusal tells the term.
  test('is not stuck between a longer log and a newer term: a refused pre-vote brings the term with it (traps 4)', () => {
    const longer = makeCore({
      conf: joint,
      hardState: { term: 1, vote: 0, commit: 0 },
      entries: [{ index: 1, term: 1, type: 'normal', data: new Uint8Array(0) }],
    });
    tickUntilCampaign(longer);
    longer.step({ type: 'preVoteResponse', from: 4, to: 1, term: 5, reject: true });
    run(longer);
    expect(longer).toMatchObject({ role: 'follower', term: 5 });
    const asked = ofType(tickUntilCampaign(longer), 'preVote');
    expect(asked.map((m) => [m.to, m.term])).toEqual([4, 5, 2, 3].map((to) => [to, 6]));

    const newer = makeCore({ id: 4, conf: joint, hardState: { term: 5, vote: 4, commit: 0 } });
    newer.step({ type: 'preVote', from: 1, to: 4, term: 2, lastIndex: 1, lastTerm: 1 });
    expect(run(newer)).toMatchObject([{ type: 'preVoteResponse', term: 5, reject: true }]);
    newer.step({ type: 'preVote', from: 1, to: 4, term: 5, lastIndex: 1, lastTerm: 1 });
    expect(run(newer)).toMatchObject([{ type: 'preVoteResponse', term: 5, reject: true }]);
    newer.step({ type: 'preVote', from: 1, to: 4, term: 6, lastIndex: 1, lastTerm: 1 });
    expect(run(newer)).toMatchObject([{ type: 'preVoteResponse', term: 6, reject: false }]);
  });
});

describe('a membership change that is committed, and not known to be by who could win with it (E6; etcd #12359)', () => {
  const entriesWithLeave = [...entries(1, 1), { index: 2, term: 1, type: 'conf', data: new Uint8Array(0) }] as const;
  const lone = { ...EMPTY_CONF, voters: [2], votersOutgoing: [1, 2, 3], autoLeave: true };

  /** The one voter that is left; its log is shorter than those of the others, which have left. */
  function lastVoter(): RaftCore {
    return makeCore({
      id: 2,
      conf: lone,
      hardState: { term: 1, vote: 1, commit: 1 },
      entries: entriesWithLeave,
      applied: 1,
    });
  }

  test.each(['preVoteResponse', 'voteResponse'] as const)('is learned from a refusal: %s', (type) => {
    const core = lastVoter();
    tickUntilCampaign(core);
    if (type === 'voteResponse') {
      for (const from of [1, 3]) core.step({ type: 'preVoteResponse', from, to: 2, term: 2, reject: false });
      run(core);
    }
    expect(core.role).toBe(type === 'voteResponse' ? 'candidate' : 'preCandidate');
    core.step({ type, from: 1, to: 2, term: core.term, reject: true, committed: { index: 2, term: 1 } });
    expect(core).toMatchObject({ role: 'follower', commit: 2 }); // whose votes count is about to change
    run(core);
    expect(core.conf).toEqual(confOf([2]));
    tickUntilCampaign(core);
    run(core);
    expect(core).toMatchObject({ role: 'leader', leaderReady: true });
  });

  test.each(['preVote', 'vote'] as const)('is learned from the request of one that would lose: %s', (type) => {
    const asked = makeCore({
      id: 4,
      conf: confOf([1, 2, 3], [4]),
      hardState: { term: 1, vote: 0, commit: 0 },
      entries: [{ index: 1, term: 1, type: 'conf', data: encodeConfChange(confChange([add(4)])) }, ...entries(2, 1, 1)],
    });
    const request = { from: 3, to: 4, term: 2, lastIndex: 2, lastTerm: 1, committed: { index: 1, term: 1 } };
    asked.step(type === 'vote' ? { type, ...request, force: false } : { type, ...request });
    expect(ofType(run(asked), `${type}Response`)).toMatchObject([{ reject: true, committed: { index: 1, term: 1 } }]);
    expect(ofType(tickUntilCampaign(asked), 'preVote').map((m) => m.to)).toEqual([1, 2, 3]);
  });

  test('is told by requests, pre-votes and votes, and by refusals, stale ones too; a grant has nothing to tell', () => {
    const core = lastVoter();
    const committed = { index: 1, term: 1 };
    expect(ofType(tickUntilCampaign(core), 'preVote')).toMatchObject([{ committed }, { committed }]);
    for (const from of [1, 3]) core.step({ type: 'preVoteResponse', from, to: 2, term: 2, reject: false });
    expect(ofType(run(core), 'vote')).toMatchObject([{ committed }, { committed }]);
    core.step({ type: 'preVote', from: 3, to: 2, term: 1, lastIndex: 9, lastTerm: 1 });
    core.step({ type: 'vote', from: 3, to: 2, term: 1, lastIndex: 9, lastTerm: 1, force: false });
    core.step({ type: 'vote', from: 3, to: 2, term: 2, lastIndex: 1, lastTerm: 1, force: false });
    core.step({ type: 'vote', from: 3, to: 2, term: 3, lastIndex: 9, lastTerm: 1, force: false });
    const answers = run(core);
    expect(answers.map((m) => ('committed' in m ? m.committed : undefined))).toEqual([
      committed,
      committed,
      committed,
      undefined,
    ]);
  });

  test('is not believed where the log differs, by a leader, or while a snapshot is received', () => {
    const refusal = (term: number, index: number) =>
      ({ type: 'voteResponse', from: 1, to: 2, term: 1, reject: true, committed: { index, term } }) as const;
    const core = lastVoter();
    core.step(refusal(2, 2));
    core.step(refusal(1, 3));
    expect(core.commit).toBe(1);
    expect(core.acceptsSnapshot(1, 1, { index: 9, term: 1, conf: confOf([2]) })).toBe(true);
    core.step(refusal(1, 2));
    expect(core.commit).toBe(1);
    core.installFailed();
    core.step(refusal(1, 2));
    expect(core.commit).toBe(2);

    const leader = makeLeader({ id: 2, silent: [1, 3] });
    leader.step(refusal(1, 1));
    expect(leader.commit).toBe(0);
  });
});
