import { type Random, SeededRandom } from '@remora/base';
import { describe, expect, test } from 'vitest';
import {
  answerHeartbeat,
  append,
  ELECTION_TICKS,
  entries,
  HEARTBEAT_TICKS,
  heartbeat,
  makeCore,
  makeLeader,
  ofType,
  propose,
  run,
  take,
  tick,
  tickUntilCampaign,
} from '../../test/support/core/core-kit.ts';
import type { RaftCore } from './raft.ts';
import type { Message } from './types.ts';

const PLAIN = { config: { preVote: false } };
const LONGEST: Random = { int: (bound) => bound - 1, bytes: (length) => Buffer.alloc(length) };

function askVote(
  core: RaftCore,
  given: { term: number; from?: number; last?: [number, number]; force?: boolean },
): void {
  const [lastIndex, lastTerm] = given.last ?? [100, 100];
  const { term, from = 2, force = false } = given;
  core.step({ type: 'vote', from, to: core.id, term, lastIndex, lastTerm, force });
}

function askPreVote(core: RaftCore, term: number): void {
  core.step({ type: 'preVote', from: 2, to: core.id, term, lastIndex: 100, lastTerm: 100 });
}

describe('campaigning', () => {
  test.each([
    { spread: {}, longest: 2 * ELECTION_TICKS - 1 },
    { spread: { electionSpreadTicks: 4 }, longest: ELECTION_TICKS + 3 },
  ])('waits are drawn from electionTicks to $longest ticks with $spread', ({ spread, longest }) => {
    const waits = new Set<number>();
    for (let seed = 0; seed < 200; seed++) {
      const core = makeCore({ config: { random: new SeededRandom(seed), ...spread } });
      let ticks = 0;
      while (core.role === 'follower') {
        core.tick();
        ticks++;
      }
      waits.add(ticks);
    }
    expect(Math.min(...waits)).toBe(ELECTION_TICKS);
    expect(Math.max(...waits)).toBe(longest);
  });

  test.each([
    { name: 'is created', given: {} },
    { name: 'is created with a first wait', given: { firstWaitTicks: 8 } },
    { name: 'starts again', given: { restarted: true, hardState: { term: 4, vote: 1, commit: 0 } } },
    { name: 'has learners', given: { learners: [2, 3] } },
  ])('the only voter campaigns at its first tick when it $name (E9)', ({ given }) => {
    const core = makeCore({ voters: [1], ...given });
    expect(core.role).toBe('follower');
    tick(core, 1);
    expect(core.role).toBe('candidate');
    run(core);
    expect(core.role).toBe('leader');
  });

  test('one of two voters waits as usual, although its own vote is half of the quorum (E9)', () => {
    const core = makeCore({ voters: [1, 2] });
    tick(core, ELECTION_TICKS - 1);
    expect(core.role).toBe('follower');
  });

  test('who refuses a pre-vote since it holds more campaigns soon itself, unless it hears a leader (E7)', () => {
    const spread = 40;
    const leftOf = (pause: number, lastIndex: number): number => {
      const core = makeCore({ config: { electionSpreadTicks: spread, random: LONGEST } });
      append(core, { from: 3, term: 1, prev: [0, 0], entries: entries(1, 1) });
      run(core);
      tick(core, pause);
      core.step({ type: 'preVote', from: 2, to: core.id, term: 2, lastIndex, lastTerm: lastIndex });
      let ticks = 0;
      while (core.role === 'follower') {
        core.tick();
        ticks++;
      }
      return ticks;
    };
    expect(leftOf(ELECTION_TICKS, 1)).toBe(spread - 1);
    expect(leftOf(ELECTION_TICKS, 0)).toBe(Math.floor((spread - 1) / 4));
    expect(leftOf(ELECTION_TICKS - 1, 0)).toBe(spread);
  });

  test('who then hears the leader after all waits for it as long as it promises to (E7)', () => {
    const core = makeCore({ config: { electionSpreadTicks: 1 } });
    append(core, { from: 3, term: 1, prev: [0, 0], entries: entries(1, 1) });
    run(core);
    tick(core, ELECTION_TICKS);
    expect(core.role).toBe('preCandidate');
    for (const from of [2, 3]) core.step({ type: 'preVoteResponse', from, to: core.id, term: 1, reject: true });
    for (let i = 0; i < 3; i++)
      core.step({ type: 'preVote', from: 2, to: core.id, term: 2, lastIndex: 0, lastTerm: 0 });
    heartbeat(core, 3, 1);
    run(core);
    tick(core, ELECTION_TICKS - 1);
    expect(core.role).toBe('follower');
    tick(core, 1);
    expect(core.role).toBe('preCandidate');
  });

  describe('when the process of the leader has ended (E8)', () => {
    /** A follower of replica 3, at the end of a heartbeat. */
    function follower(
      given: { readonly id?: number; readonly term?: number; readonly voters?: number } = {},
    ): RaftCore {
      const { id = 1, term = 6, voters = 3 } = given;
      const core = makeCore({ id, voters: Array.from({ length: voters }, (_, i) => i + 1) });
      heartbeat(core, 3, term);
      run(core);
      return core;
    }

    function ticksToCampaign(core: RaftCore): number {
      let ticks = 0;
      for (; core.role === 'follower'; ticks++) core.tick();
      return ticks;
    }

    test.each([
      { term: 6, waits: [1, 3] },
      { term: 7, waits: [3, 1] },
    ])('its followers campaign one after the other; who is first changes with the term ($term)', ({ term, waits }) => {
      const cores = [1, 2].map((id) => follower({ id, term }));
      for (const core of cores) core.leaderGone();
      expect(cores.map(ticksToCampaign)).toEqual(waits);
    });

    test('with five voters no two of the four others campaign together', () => {
      const cores = [1, 2, 4, 5].map((id) => follower({ id, voters: 5 }));
      for (const core of cores) core.leaderGone();
      expect(new Set(cores.map(ticksToCampaign)).size).toBe(4);
    });

    test('a follower grants pre-votes and votes at once, and refuses them while it knows nothing of the end', () => {
      const answers = (gone: boolean): boolean[] => {
        const core = follower();
        if (gone) core.leaderGone();
        askPreVote(core, 7);
        askVote(core, { term: 7 });
        return run(core).flatMap((m) =>
          'reject' in m && m.type.startsWith('pre') ? [m.reject] : m.type === 'voteResponse' ? [m.reject] : [],
        );
      };
      expect(answers(true)).toEqual([false, false]);
      expect(answers(false)).toEqual([true]); // and the vote is ignored
    });

    test('a leader that is heard again is waited for, and is promised as much as before', () => {
      const core = follower();
      core.leaderGone();
      heartbeat(core, 3, 6);
      run(core);
      tick(core, ELECTION_TICKS - 1);
      expect(core.role).toBe('follower');
      askPreVote(core, 7);
      expect(ofType(run(core), 'preVoteResponse')).toMatchObject([{ reject: true }]);
    });

    test('a replica that follows no leader does nothing', () => {
      const core = makeCore();
      core.leaderGone();
      tick(core, ELECTION_TICKS - 1);
      expect(core.role).toBe('follower');
    });
  });

  test('a pre-vote changes nothing durable and needs no fsync', () => {
    const core = makeCore();
    tick(core, 2 * ELECTION_TICKS);
    const taken = take(core);
    expect(core.role).toBe('preCandidate');
    expect(core.term).toBe(0);
    expect(taken.marks).toEqual([]);
    expect(
      ofType(taken.messages, 'preVote')
        .slice(0, 2)
        .map((m) => [m.to, m.term]),
    ).toEqual([
      [2, 1],
      [3, 1],
    ]);
  });

  test('a vote request leaves only after term and own vote are durable', () => {
    const core = makeCore(PLAIN);
    tick(core, 2 * ELECTION_TICKS - 1);
    const { messages, marks, readies } = take(core);
    expect(ofType(messages, 'vote')).toEqual([]);
    expect(readies[0]?.persist?.hardState).toMatchObject({ term: 1, vote: 1 });
    for (const mark of marks) core.persisted(mark);
    expect(ofType(take(core).messages, 'vote').map((m) => m.to)).toEqual([2, 3]);
  });

  test('a candidate does not lead before its own vote is durable, even if the others suffice', () => {
    const core = makeCore(PLAIN);
    tick(core, 2 * ELECTION_TICKS - 1);
    const { marks } = take(core);
    for (const from of [2, 3]) core.step({ type: 'voteResponse', from, to: 1, term: 1, reject: false });
    expect(core.role).toBe('candidate');
    for (const mark of marks) core.persisted(mark);
    expect(core.role).toBe('leader');
  });

  test('a single replica leads and commits only after its fsyncs', () => {
    const core = makeCore({ voters: [1] });
    tick(core, 2 * ELECTION_TICKS - 1);
    const first = take(core);
    expect(core.role).toBe('candidate');
    for (const mark of first.marks) core.persisted(mark);
    expect(core.role).toBe('leader');
    const second = take(core);
    expect(core.commit).toBe(0);
    for (const mark of second.marks) core.persisted(mark);
    expect(core.commit).toBe(1);
  });

  test('a vote request of a term gone by is not released', () => {
    const core = makeCore(PLAIN);
    tick(core, 2 * ELECTION_TICKS - 1);
    const { marks } = take(core);
    append(core, { term: 5, prev: [0, 0] });
    for (const mark of marks) core.persisted(mark);
    expect(ofType(take(core).messages, 'vote')).toEqual([]);
  });

  test('nor one of a candidate that follows a leader by now', () => {
    const core = makeCore(PLAIN);
    tick(core, 2 * ELECTION_TICKS - 1);
    const { marks } = take(core);
    heartbeat(core, 3, core.term);
    for (const mark of marks) core.persisted(mark);
    expect(ofType(take(core).messages, 'vote')).toEqual([]);
  });

  test('a new leader appends an empty entry', () => {
    const core = makeLeader();
    expect(core.status()).toMatchObject({ role: 'leader', term: 1, lastIndex: 1, commit: 1, leaderReady: true });
  });

  test.each([
    { name: 'a learner', given: { id: 4, learners: [4] } },
    { name: 'a replica outside the configuration', given: { id: 9 } },
    {
      name: 'a replica with a committed membership change that is not applied',
      given: {
        entries: [{ ...entries(1, 1)[0], type: 'conf' } as ReturnType<typeof entries>[number]],
        hardState: { term: 1, vote: 0, commit: 1 },
      },
    },
  ])('$name does not campaign', ({ given }) => {
    const core = makeCore(given);
    for (let i = 0; i < 5 * ELECTION_TICKS; i++) {
      core.tick();
      take(core); // nothing is applied
    }
    expect(core.role).toBe('follower');
  });

  test('refusals by a quorum end a pre-vote at once', () => {
    const core = makeCore();
    tickUntilCampaign(core);
    for (const from of [2, 3]) core.step({ type: 'preVoteResponse', from, to: 1, term: 0, reject: true });
    expect(core.role).toBe('follower');
  });

  test('a pre-vote grant for another term does not count', () => {
    const core = makeCore();
    tickUntilCampaign(core);
    for (const from of [2, 3]) core.step({ type: 'preVoteResponse', from, to: 1, term: 7, reject: false });
    expect(core.role).toBe('preCandidate');
  });
});

describe('voting', () => {
  test('a vote leaves only after it is durable', () => {
    const core = makeCore();
    askVote(core, { term: 3 });
    const { messages, marks, readies } = take(core);
    expect(messages).toEqual([]);
    expect(readies[0]?.persist?.hardState).toEqual({ term: 3, vote: 2, commit: 0 });
    for (const mark of marks) core.persisted(mark);
    expect(take(core).messages).toEqual([{ type: 'voteResponse', from: 1, to: 2, term: 3, reject: false }]);
  });

  test('one vote per term, also after a restart', () => {
    const core = makeCore({ hardState: { term: 3, vote: 2, commit: 0 } });
    askVote(core, { term: 3, from: 3 });
    expect(run(core)).toMatchObject([{ type: 'voteResponse', reject: true }]);
    askVote(core, { term: 3, from: 2 });
    expect(run(core)).toMatchObject([{ type: 'voteResponse', reject: false }]);
  });

  test.each<{ name: string; last: [number, number]; reject: boolean }>([
    { name: 'a longer log of the same term', last: [3, 2], reject: false },
    { name: 'an equal log', last: [2, 2], reject: false },
    { name: 'a shorter log of a newer term', last: [1, 3], reject: false },
    { name: 'a shorter log', last: [1, 2], reject: true },
    { name: 'a longer log of an older term', last: [9, 1], reject: true },
  ])('$name: rejected $reject', ({ last, reject }) => {
    const given = { entries: entries(1, 1, 2), hardState: { term: 3, vote: 0, commit: 0 } };
    const core = makeCore(given);
    askVote(core, { term: 4, last });
    expect(run(core)).toMatchObject([{ type: 'voteResponse', term: 4, reject }]);
    const other = makeCore(given);
    other.step({ type: 'preVote', from: 2, to: 1, term: 4, lastIndex: last[0], lastTerm: last[1] });
    expect(run(other)).toMatchObject([{ type: 'preVoteResponse', term: reject ? 3 : 4, reject }]);
  });

  test('who hears a leader refuses votes and pre-votes, until an election timeout of silence', () => {
    const core = makeCore();
    heartbeat(core, 3, 1);
    run(core);
    tick(core, ELECTION_TICKS - 1);
    askVote(core, { term: 2 });
    askPreVote(core, 2);
    expect(run(core)).toMatchObject([{ type: 'preVoteResponse', term: 1, reject: true }]);
    expect(core.term).toBe(1);
    const silent = makeCore();
    heartbeat(silent, 3, 1);
    tick(silent, ELECTION_TICKS);
    run(silent);
    askPreVote(silent, 2);
    askVote(silent, { term: 2 });
    expect(ofType(run(silent), 'voteResponse')).toMatchObject([{ term: 2, reject: false }]);
  });

  test('a forced vote is given although a leader is heard', () => {
    const core = makeCore();
    heartbeat(core, 3, 1);
    askVote(core, { term: 2, force: true });
    expect(ofType(run(core), 'voteResponse')).toMatchObject([{ term: 2, reject: false }]);
  });

  test('a restarted replica refuses unforced votes for one full election timeout', () => {
    const core = makeCore({ restarted: true });
    tick(core, ELECTION_TICKS - 1);
    askVote(core, { term: 5 });
    askPreVote(core, 5);
    expect(ofType(run(core), 'preVoteResponse')).toMatchObject([{ reject: true }]);
    expect(core.term).toBe(0);
    core.tick();
    askVote(core, { term: 5 });
    expect(ofType(run(core), 'voteResponse')).toMatchObject([{ term: 5, reject: false }]);
    const forced = makeCore({ restarted: true });
    askVote(forced, { term: 5, force: true });
    expect(run(forced)).toMatchObject([{ term: 5, reject: false }]);
  });

  test('a learner that does not know of its promotion votes when asked', () => {
    const core = makeCore({ id: 4, learners: [4] });
    askVote(core, { term: 2 });
    expect(run(core)).toMatchObject([{ type: 'voteResponse', reject: false }]);
  });
});

describe('terms', () => {
  const envelope = { from: 2, to: 1, term: 3 } as const;
  test.each<{ name: string; message: Message; expect: object[] }>([
    {
      name: 'a stale pre-vote',
      message: { ...envelope, type: 'preVote', lastIndex: 9, lastTerm: 9 },
      expect: [{ type: 'preVoteResponse', reject: true, term: 5 }],
    },
    {
      name: 'a stale vote request',
      message: { ...envelope, type: 'vote', lastIndex: 9, lastTerm: 9, force: false },
      expect: [{ type: 'voteResponse', reject: true, term: 5 }],
    },
    {
      name: 'a stale append',
      message: { ...envelope, type: 'append', prevIndex: 0, prevTerm: 0, entries: [], commit: 0 },
      expect: [{ type: 'appendResponse', reject: true, index: 0, term: 5 }],
    },
    {
      name: 'a stale heartbeat',
      message: { ...envelope, type: 'heartbeat', commit: 0, readContext: 0 },
      expect: [{ type: 'appendResponse', reject: true, index: 0, term: 5 }],
    },
  ])('$name is answered with the newer term', ({ message, expect: expected }) => {
    const core = makeCore({ hardState: { term: 5, vote: 0, commit: 0 } });
    core.step(message);
    expect(run(core)).toMatchObject(expected);
  });

  test('a leader that learns of a newer term steps down', () => {
    const core = makeLeader();
    core.step({ type: 'preVoteResponse', from: 2, to: 1, term: 9, reject: true });
    expect([core.role, core.term, core.leader]).toEqual(['follower', 9, 0]);
  });

  test('a candidate follows the leader of its term', () => {
    const core = makeCore(PLAIN);
    tick(core, 2 * ELECTION_TICKS - 1);
    heartbeat(core, 3, core.term);
    expect([core.role, core.leader]).toEqual(['follower', 3]);
  });

  test('a message for someone else is ignored', () => {
    const core = makeCore();
    core.step({ type: 'heartbeat', from: 2, to: 3, term: 9, commit: 0, readContext: 0 });
    expect([core.term, core.hasReady()]).toEqual([0, false]);
  });
});

describe('a leader that hears no quorum', () => {
  test('steps down after an election timeout', () => {
    const core = makeLeader({ voters: [1, 2, 3, 4, 5] });
    for (let i = 0; i < 3 * ELECTION_TICKS; i++) {
      core.tick();
      if (i % HEARTBEAT_TICKS === 0) answerHeartbeat(core, 2); // one of four is not enough
    }
    expect([core.role, core.term, core.leader]).toEqual(['follower', 1, 0]);
  });

  test('stays while half of the others answer', () => {
    const core = makeLeader();
    for (let i = 0; i < 5 * ELECTION_TICKS; i++) {
      core.tick();
      if (i % HEARTBEAT_TICKS === 0) {
        core.step({ type: 'heartbeatResponse', from: 2, to: 1, term: 1, commit: 0, readContext: 0 });
      }
      run(core);
    }
    expect(core.role).toBe('leader');
  });
});

describe('handing leadership over', () => {
  test('asks a target that is up to date to campaign at once, and refuses proposals meanwhile', () => {
    const core = makeLeader();
    expect(core.transferLeader(2)).toBeUndefined();
    expect(ofType(run(core), 'timeoutNow').map((m) => m.to)).toEqual([2]);
    expect(core.propose(Buffer.from('x'))).toEqual({ refused: 'transferring' });
    expect(core.transferLeader(3)).toEqual({ refused: 'transferring' });
  });

  test('brings a target up to date first', () => {
    const core = makeLeader();
    propose(core, 'a');
    expect(core.transferLeader(2)).toBeUndefined();
    expect(ofType(run(core), 'timeoutNow')).toEqual([]);
    core.step({
      type: 'appendResponse',
      from: 2,
      to: 1,
      term: 1,
      reject: false,
      index: 2,
      hintIndex: 0,
      hintTerm: 0,
      commit: 1,
    });
    expect(ofType(run(core), 'timeoutNow').map((m) => m.to)).toEqual([2]);
  });

  test('is given up after an election timeout', () => {
    const core = makeLeader({ config: { checkQuorum: false } });
    core.transferLeader(2);
    tick(core, ELECTION_TICKS - 1);
    expect(core.propose(Buffer.from('x'))).toEqual({ refused: 'transferring' });
    core.tick();
    expect(core.propose(Buffer.from('x'))).toEqual({ index: 2, term: 1 });
  });

  test('goes to voters only, and from the leader only', () => {
    expect(makeLeader({ learners: [4] }).transferLeader(4)).toEqual({ refused: 'notVoter' });
    expect(makeLeader().transferLeader(9)).toEqual({ refused: 'notVoter' });
    expect(makeCore().transferLeader(2)).toEqual({ refused: 'notLeader' });
  });

  test('the target campaigns without asking first, by force, after its fsync', () => {
    const core = makeCore({ id: 2 });
    heartbeat(core, 1, 1);
    run(core);
    core.step({ type: 'timeoutNow', from: 1, to: 2, term: 1 });
    const { messages, marks } = take(core);
    expect(messages).toEqual([]);
    for (const mark of marks) core.persisted(mark);
    expect(ofType(take(core).messages, 'vote')).toMatchObject([
      { to: 1, force: true, term: 2 },
      { to: 3, force: true },
    ]);
  });
});

describe('a group that begins with a leader (roles.ts R3)', () => {
  const start = { index: 1, term: 1 };
  const begun = { start, applied: 1, hardState: { term: 1, vote: 0, commit: 1 }, firstLeader: 1 };

  test('is led from the start: the leader appends at once, and has voted for itself', () => {
    const core = makeCore(begun);
    expect([core.role, core.term, core.leader]).toEqual(['leader', 1, 1]);
    const { messages, readies } = take(core);
    expect(messages.map(({ type, to }) => [type, to])).toEqual([
      ['append', 2],
      ['append', 3],
    ]);
    expect(readies[0]?.persist).toMatchObject({ hardState: { term: 1, vote: 1 }, entries: [{ index: 2, term: 1 }] });
    expect(readies[0]?.soft).toEqual({ role: 'leader', term: 1, leader: 1 });
  });

  test('has followers that say that they are there, wait for it, and have no other vote in its term', () => {
    const core = makeCore({ ...begun, id: 2 });
    expect([core.role, core.leader]).toEqual(['follower', 1]);
    const { messages, readies } = take(core);
    expect(messages).toMatchObject([{ type: 'heartbeatResponse', to: 1, term: 1 }]);
    expect(readies[0]?.persist?.hardState).toEqual({ term: 1, vote: 1, commit: 1 });
    core.step({ type: 'vote', from: 3, to: 2, term: 1, lastIndex: 1, lastTerm: 1, force: true });
    expect(ofType(run(core), 'voteResponse')).toMatchObject([{ to: 3, reject: true }]);
    tick(core, ELECTION_TICKS - 1);
    expect(run(core)).toEqual([]);
  });

  test('sends a follower what it missed as soon as that one is there', () => {
    const core = makeCore(begun);
    take(core); // both were not there yet
    core.step({ type: 'heartbeatResponse', from: 3, to: 1, term: 1, commit: 1, readContext: 0 });
    expect(take(core).messages).toMatchObject([{ type: 'append', to: 3, prevIndex: 1, entries: [{ index: 2 }] }]);
  });

  test('has no such leader any more after a restart', () => {
    const core = makeCore({ ...begun, hardState: { term: 1, vote: 1, commit: 1 }, restarted: true });
    expect([core.role, core.leader]).toEqual(['follower', 0]);
  });
});

describe('the first wait', () => {
  test('of a new group may be short; later ones are drawn', () => {
    const core = makeCore({ firstWaitTicks: 2 });
    tick(core, 1);
    expect(run(core)).toEqual([]);
    tick(core, 1);
    expect(run(core).map(({ type }) => type)).toEqual(['preVote', 'preVote']);
    // Nobody was there yet.
    tick(core, ELECTION_TICKS - 1);
    expect(run(core)).toEqual([]);
    tick(core, ELECTION_TICKS);
    expect(run(core).map(({ type }) => type)).toEqual(['preVote', 'preVote']);
  });

  test('may be followed by others as short, for an election time-out, as the others are about to come', () => {
    const core = makeCore({ firstWaitTicks: 0, firstRetryTicks: 2 });
    const asked: number[] = [];
    for (let at = 1; at <= 4 * ELECTION_TICKS; at++) {
      tick(core, 1);
      if (run(core).some(({ type }) => type === 'preVote')) asked.push(at);
    }
    const soon = asked.filter((at) => at < ELECTION_TICKS);
    expect(soon).toEqual(Array.from({ length: Math.ceil((ELECTION_TICKS - 1) / 2) }, (_, i) => 1 + 2 * i));
    const later = asked.filter((at) => at > 2 * ELECTION_TICKS);
    expect(later.length).toBeGreaterThan(0);
    expect(later.length).toBeLessThanOrEqual(3);
  });

  test('is followed by usual ones once there was a term: votes must not be split again and again', () => {
    const core = makeCore({ firstWaitTicks: 0, firstRetryTicks: 1 });
    tick(core, 1);
    run(core);
    for (const from of [2, 3]) core.step({ type: 'preVoteResponse', from, to: 1, term: 1, reject: false });
    expect(run(core).map(({ type }) => type)).toContain('vote');
    tick(core, ELECTION_TICKS - 1);
    expect(run(core)).toEqual([]);
  });

  test('may be short in whatever term the members begin in', () => {
    const core = makeCore({
      ...{ start: { index: 1, term: 1 }, applied: 1, hardState: { term: 1, vote: 0, commit: 1 } },
      ...{ firstWaitTicks: 0, firstRetryTicks: 2 },
    });
    const asked = [1, 2, 3].filter(() => {
      tick(core, 1);
      return run(core).some(({ type }) => type === 'preVote');
    });
    expect(asked).toEqual([1, 3]);
  });

  // It would campaign between two heartbeats of a leader that has counted its promise for its lease (lease.ts E2).
  test('is over once a leader is heard that leads in the term in which the members began', () => {
    for (const hear of [
      (core: RaftCore) => heartbeat(core, 1, 1),
      (core: RaftCore) => append(core, { from: 1, term: 1, prev: [1, 1], entries: entries(2, 1) }),
    ]) {
      const core = makeCore({
        ...{ start: { index: 1, term: 1 }, applied: 1, hardState: { term: 1, vote: 0, commit: 1 } },
        ...{ id: 2, firstWaitTicks: 3 },
      });
      tick(core, 2);
      hear(core);
      run(core);
      tick(core, ELECTION_TICKS - 1);
      expect(run(core).filter(({ type }) => type === 'preVote')).toEqual([]);
      tick(core, ELECTION_TICKS);
      expect(run(core).filter(({ type }) => type === 'preVote')).not.toEqual([]);
    }
  });

  test('is over once a leader is heard', () => {
    const core = makeCore({ id: 2, firstWaitTicks: 3 });
    tick(core, 2);
    heartbeat(core, 1, 1);
    run(core);
    tick(core, ELECTION_TICKS - 1);
    expect(run(core).filter(({ type }) => type === 'preVote')).toEqual([]);
  });
});
