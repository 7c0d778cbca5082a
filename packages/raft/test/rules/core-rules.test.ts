// The rules of design §4 and the traps that show in one core. Each test is named after its rule, and each rule has a
// mutation (../mutations) that its test must notice.
import { describe, expect, test } from 'vitest';
import type { RaftCore } from '../../src/core/raft.ts';
import {
  ack,
  answerHeartbeat,
  append,
  appendsTo,
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
} from '../support/core/core-kit.ts';

const PLAIN = { config: { preVote: false } };
const statesOf = (core: RaftCore) => take(core).readies.flatMap((ready) => ready.readStates);
const lastRound = (core: RaftCore) => ofType(run(core), 'heartbeat').at(-1)?.readContext ?? 0;

/** `from` asks for a vote with a log that is better than any here. */
function askVote(core: RaftCore, from: number, term: number, force = false): void {
  core.step({ type: 'vote', from, to: core.id, term, lastIndex: 100, lastTerm: 100, force });
}

function askPreVote(core: RaftCore, from: number, term: number): void {
  core.step({ type: 'preVote', from, to: core.id, term, lastIndex: 100, lastTerm: 100 });
}

describe('persistence', () => {
  test('design §4 ▸: no vote request leaves before the term and the own vote are on disk', () => {
    const core = makeCore(PLAIN);
    tickUntilCampaignStarts(core);
    const asked = take(core);
    expect(asked.readies[0]?.persist?.hardState).toMatchObject({ term: 1, vote: 1 });
    expect(asked.messages).toEqual([]);
    for (const mark of asked.marks) core.persisted(mark);
    expect(ofType(run(core), 'vote').map((m) => m.to)).toEqual([2, 3]);
  });

  test('design §4 ▸: no vote leaves before the term and the vote are on disk', () => {
    const core = makeCore();
    askVote(core, 2, 1);
    const voted = take(core);
    expect(voted.readies[0]?.persist?.hardState).toMatchObject({ term: 1, vote: 2 });
    expect(voted.messages).toEqual([]);
    for (const mark of voted.marks) core.persisted(mark);
    expect(run(core)).toEqual([{ type: 'voteResponse', from: 1, to: 2, term: 1, reject: false }]);
  });

  test('design §4 ▸: a vote given in a term that is on disk already is written down as well', () => {
    const core = makeCore({ hardState: { term: 1, vote: 0, commit: 0 } });
    askVote(core, 2, 1);
    const voted = take(core);
    expect(voted.messages).toEqual([]);
    expect(voted.readies[0]?.persist?.hardState).toEqual({ term: 1, vote: 2, commit: 0 });
  });

  test('design §4 ▸: the own vote counts only when it is on disk, even if the votes of others suffice', () => {
    const core = makeCore(PLAIN);
    tickUntilCampaignStarts(core);
    const { marks } = take(core);
    for (const from of [2, 3]) core.step({ type: 'voteResponse', from, to: 1, term: 1, reject: false });
    expect(core.role).toBe('candidate');
    for (const mark of marks) core.persisted(mark);
    expect(core.role).toBe('leader');
  });

  test('design §4 ▸: an acknowledgement waits for the fsync of what it acknowledges', () => {
    const core = makeCore();
    append(core, { term: 1, prev: [0, 0], entries: entries(1, 1, 1) });
    const { messages, marks } = take(core);
    expect(messages).toEqual([]);
    for (const mark of marks) core.persisted(mark);
    expect(run(core)).toMatchObject([{ type: 'appendResponse', reject: false, index: 2 }]);
  });

  test("design §4 ▸: the leader's own count waits for its fsync", () => {
    const core = makeLeader();
    propose(core, 'a');
    const { marks } = take(core);
    ack(core, 2); // two of three hold it, one of them only in memory
    expect(core.commit).toBe(1);
    for (const mark of marks) core.persisted(mark);
    expect(core.commit).toBe(2);
  });

  test('design §4 ▸: a persistence mark counts only as far as the log has held its entries ever since', () => {
    const core = makeCore();
    append(core, { from: 2, term: 1, prev: [0, 0], entries: entries(1, 1, 1) });
    const first = take(core).marks;
    append(core, { from: 3, term: 2, prev: [1, 1], entries: entries(2, 2) });
    const second = take(core).marks;
    for (const mark of first) core.persisted(mark);
    expect(core.status().stableIndex).toBe(1); // 2@1 is on disk, 2@2 is in the log
    expect(ofType(run(core), 'appendResponse')).toEqual([]);
    for (const mark of second) core.persisted(mark);
    expect(run(core)).toMatchObject([{ type: 'appendResponse', term: 2, reject: false, index: 2 }]);
  });

  test('design §4 ▸: an acknowledgement of an older term does not leave late', () => {
    const core = makeCore();
    append(core, { from: 2, term: 1, prev: [0, 0], entries: entries(1, 1) });
    const { marks } = take(core);
    heartbeat(core, 3, 2);
    take(core);
    for (const mark of marks) core.persisted(mark);
    expect(ofType(run(core), 'appendResponse')).toEqual([]);
  });

  test('design §4: entries go to followers before the own fsync', () => {
    const core = makeLeader();
    propose(core, 'a');
    const { messages, marks } = take(core);
    expect(marks).toHaveLength(1);
    expect(appendsTo(messages, 2)).toMatchObject([{ entries: [{ index: 2 }] }]);
  });

  test('trap 8: a group of one replica commits nothing before its own fsync', () => {
    const core = makeCore({ voters: [1] });
    tickUntilCampaignStarts(core);
    const voted = take(core);
    expect(core.role).toBe('candidate');
    for (const mark of voted.marks) core.persisted(mark);
    const { marks, committed } = take(core);
    expect([core.commit, committed]).toEqual([0, []]);
    for (const mark of marks) core.persisted(mark);
    expect(core.commit).toBe(1);
  });
});

/** Ticks until it campaigns, taking nothing. */
function tickUntilCampaignStarts(core: RaftCore): void {
  for (let i = 0; i < 2 * ELECTION_TICKS && core.role === 'follower'; i++) core.tick();
}

describe('elections', () => {
  test('design §4 ▸: a restarted replica refuses unforced votes and pre-votes for one full election timeout', () => {
    const core = makeCore({ restarted: true });
    tick(core, ELECTION_TICKS - 1);
    askPreVote(core, 2, 1);
    askVote(core, 2, 1);
    expect(run(core)).toEqual([{ type: 'preVoteResponse', from: 1, to: 2, term: 0, reject: true }]);
    expect(core.term).toBe(0);
    core.tick();
    askPreVote(core, 2, 1);
    askVote(core, 2, 1);
    expect(run(core).map((m) => 'reject' in m && m.reject)).toEqual([false, false]);
  });

  test('design §4: a vote is refused to a candidate that lacks what may be committed', () => {
    const core = makeCore({ entries: entries(1, 1, 2), hardState: { term: 2, vote: 0, commit: 0 } });
    core.step({ type: 'vote', from: 2, to: 1, term: 3, lastIndex: 5, lastTerm: 1, force: false });
    expect(ofType(run(core), 'voteResponse')).toMatchObject([{ term: 3, reject: true }]);
  });

  test('design §4: who hears a leader neither votes nor adopts the term of a candidate', () => {
    const core = makeCore();
    heartbeat(core, 2, 1);
    run(core);
    askVote(core, 3, 2);
    askPreVote(core, 3, 2);
    expect(run(core)).toMatchObject([{ type: 'preVoteResponse', reject: true }]);
    expect([core.term, core.leader]).toEqual([1, 2]);
  });

  test('design §4: the promise to a leader outlives the news of a newer term', () => {
    const core = makeCore();
    heartbeat(core, 2, 1);
    run(core);
    core.step({ type: 'preVoteResponse', from: 3, to: 1, term: 2, reject: true }); // late, and of a newer term
    askVote(core, 3, 2);
    expect(ofType(run(core), 'voteResponse')).toMatchObject([{ term: 2, reject: true }]);
  });

  test('trap 4: a stale pre-vote is answered with the newer term', () => {
    const core = makeCore({ hardState: { term: 5, vote: 0, commit: 0 } });
    askPreVote(core, 2, 3);
    expect(run(core)).toEqual([{ type: 'preVoteResponse', from: 1, to: 2, term: 5, reject: true }]);
    const asker = makeCore();
    tickUntilCampaign(asker);
    asker.step({ type: 'preVoteResponse', from: 2, to: 1, term: 5, reject: true });
    expect([asker.role, asker.term]).toEqual(['follower', 5]);
  });

  test('trap 4: a leader of an older term is answered with the newer term', () => {
    const core = makeCore({ hardState: { term: 5, vote: 0, commit: 0 } });
    heartbeat(core, 2, 3);
    append(core, { term: 3, prev: [0, 0] });
    expect(run(core)).toMatchObject([
      { type: 'appendResponse', to: 2, term: 5, reject: true },
      { type: 'appendResponse', to: 2, term: 5, reject: true },
    ]);
  });

  test('trap 5: a leader that hears no quorum for an election timeout steps down', () => {
    const core = makeLeader({ voters: [1, 2, 3, 4, 5] });
    tick(core, ELECTION_TICKS);
    expect(core.role).toBe('leader');
    answerHeartbeat(core, 2); // one of four: a bridge to the rest would see two leaders
    tick(core, ELECTION_TICKS);
    expect([core.role, core.leader]).toEqual(['follower', 0]);
  });

  test('trap 5: a leader stays while a quorum answers', () => {
    const core = makeLeader({ voters: [1, 2, 3, 4, 5] });
    for (let i = 0; i < 4 * ELECTION_TICKS; i++) {
      core.tick();
      for (const from of [2, 4]) answerHeartbeat(core, from);
    }
    expect(core.role).toBe('leader');
  });

  test('trap 10: a message for another replica of the group does nothing', () => {
    const core = makeCore({ id: 7, voters: [7, 2, 3] }); // replica 1 lived here before, with a log
    core.step({ type: 'vote', from: 2, to: 1, term: 1, lastIndex: 0, lastTerm: 0, force: false });
    core.step({ type: 'heartbeat', from: 2, to: 1, term: 1, commit: 0, readContext: 0 });
    expect([run(core), core.term]).toEqual([[], 0]);
  });
});

test('trap 11: silence counts from when a leader was last heard, or when this replica was one', () => {
  const core = makeLeader();
  for (let i = 0; i < 50; i++) {
    core.tick();
    answerHeartbeat(core, 2);
  }
  expect(core.silentTicks).toBe(0);
  heartbeat(core, 3, core.term + 1);
  tick(core, 5);
  expect(core.silentTicks).toBe(5);
  heartbeat(core, 3, core.term);
  core.step({ type: 'preVoteResponse', from: 2, to: 1, term: core.term + 1, reject: true }); // no leader is known
  tick(core, 7);
  expect(core.silentTicks).toBe(7);
  const deposed = makeLeader();
  tick(deposed, 30);
  expect([deposed.role, deposed.silentTicks < 30]).toEqual(['follower', true]);
});

describe('commit and reads', () => {
  test('design §4: only entries of the own term commit by counting replicas', () => {
    const core = makeLeader({ entries: entries(1, 1), hardState: { term: 1, vote: 0, commit: 0 }, silent: [2, 3] });
    ack(core, 2, 1);
    ack(core, 3, 1);
    expect(core.commit).toBe(0);
    ack(core, 2, 2);
    expect(core.commit).toBe(2);
  });

  test('design §4: a read waits until an entry of the own term is committed', () => {
    const core = makeLeader({ silent: [2, 3] });
    core.readIndex(1);
    expect(ofType(run(core), 'heartbeat')).toEqual([]);
    ack(core, 2);
    answerHeartbeat(core, 2, lastRound(core));
    expect(statesOf(core)).toEqual([{ context: 1, index: 1 }]);
  });

  test('trap 7: an answer from before a read confirms nothing of it', () => {
    const core = makeLeader();
    core.readIndex(1);
    const before = lastRound(core);
    core.readIndex(2); // after a pause, say
    run(core);
    answerHeartbeat(core, 2, before);
    expect(statesOf(core)).toEqual([{ context: 1, index: 1 }]);
  });

  test('trap 7: each try of a round has a number of its own', () => {
    const core = makeLeader();
    core.readIndex(1);
    const lost = lastRound(core);
    tick(core, HEARTBEAT_TICKS);
    expect(lastRound(core)).toBeGreaterThan(lost);
  });

  test('trap 7: reads are dropped with the term, and an answer of the old term confirms nothing', () => {
    const core = makeLeader();
    core.readIndex(1);
    const { term } = core;
    const round = lastRound(core);
    heartbeat(core, 3, term + 1);
    core.step({ type: 'heartbeatResponse', from: 2, to: 1, term, commit: 1, readContext: round });
    const { readies } = take(core);
    expect(readies.flatMap((ready) => ready.readStates)).toEqual([]);
    expect(readies.flatMap((ready) => ready.readsDropped)).toEqual([1]);
  });
});
