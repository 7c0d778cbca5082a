import { describe, expect, test } from 'vitest';
import {
  ack,
  answerHeartbeat,
  ELECTION_TICKS,
  HEARTBEAT_TICKS,
  type KitOptions,
  makeLeader,
  ofType,
  propose,
  run,
  take,
  tick,
} from '../../test/support/core/core-kit.ts';
import { confOf } from './membership/membership.ts';
import type { RaftCore } from './raft.ts';
import type { Message, ReplicaId } from './types.ts';

/** Who of the others is sent entries, and up to which index. */
function sentTo(messages: readonly Message[]): Record<ReplicaId, number> {
  const appends = ofType(messages, 'append').filter(({ entries }) => entries.length > 0);
  return Object.fromEntries(appends.map(({ to, entries }) => [to, entries.at(-1)?.index ?? 0]));
}

/** Proposes one entry, which becomes durable here. Returns who is sent what with it. */
function put(core: RaftCore): Record<ReplicaId, number> {
  propose(core, 'x');
  return sentTo(run(core));
}

function thriftyLeader(options: Partial<KitOptions> = {}): RaftCore {
  return makeLeader({ ...options, config: { entriesMayWait: true, ...options.config } });
}

/** A leader that has just had a trial, which those in `fast` acknowledged, in that order, before the others did. */
function leaderAfterTrial(fast: readonly ReplicaId[] = [2], options: Partial<KitOptions> = {}): RaftCore {
  const core = thriftyLeader(options);
  tick(core, HEARTBEAT_TICKS);
  put(core);
  const others = core.status().progress.map(({ replica }) => replica);
  for (const from of [...fast, ...others.filter((id) => !fast.includes(id))]) ack(core, from);
  run(core);
  return core;
}

describe('who gets entries at once', () => {
  test('all, where entries must not wait', () => {
    const core = leaderAfterTrial([2], { config: { entriesMayWait: false } });
    expect(put(core)).toEqual({ 2: 3, 3: 3 });
  });

  test('all with the first entries after a heartbeat interval, then those who committed these', () => {
    const core = thriftyLeader();
    tick(core, HEARTBEAT_TICKS);
    expect(put(core)).toEqual({ 2: 2, 3: 2 });
    ack(core, 3);
    ack(core, 2);
    expect(put(core)).toEqual({ 3: 3 });
    ack(core, 3);
    expect(put(core)).toEqual({ 3: 4 });
    ack(core, 3);
    tick(core, HEARTBEAT_TICKS);
    run(core);
    expect(put(core)).toEqual({ 2: 5, 3: 5 });
    ack(core, 2);
    ack(core, 3);
    expect(put(core)).toEqual({ 2: 6 });
  });

  test('all until those entries are committed', () => {
    const core = thriftyLeader();
    tick(core, HEARTBEAT_TICKS);
    put(core);
    expect(put(core)).toEqual({ 2: 3, 3: 3 });
  });

  test('all followers, when they were both faster than the disk of the leader', () => {
    const core = thriftyLeader();
    tick(core, HEARTBEAT_TICKS);
    propose(core, 'x');
    const { marks } = take(core);
    ack(core, 2);
    ack(core, 3);
    for (const mark of marks) core.persisted(mark);
    expect(put(core)).toEqual({ 2: 3, 3: 3 });
  });

  test('as many as a quorum of five needs', () => {
    const core = leaderAfterTrial([4, 2], { voters: [1, 2, 3, 4, 5] });
    expect(put(core)).toEqual({ 2: 3, 4: 3 });
  });

  test('no learner', () => {
    const core = leaderAfterTrial([4, 2], { voters: [1, 2, 3], learners: [4] });
    expect(put(core)).toEqual({ 2: 3 });
  });

  test('all while the leader has not written what came before', () => {
    const core = leaderAfterTrial();
    propose(core, 'x');
    expect(sentTo(take(core).messages)).toEqual({ 2: 3 });
    ack(core, 2);
    propose(core, 'y');
    expect(sentTo(take(core).messages)).toEqual({ 2: 4, 3: 4 });
  });

  test('a quorum of both halves of a joint configuration', () => {
    const core = leaderAfterTrial();
    core.applyConf({ ...confOf([1, 2, 4]), votersOutgoing: [1, 2, 3] });
    run(core);
    ack(core, 4);
    put(core);
    for (const from of [3, 4, 2]) ack(core, from);
    expect(put(core)).toEqual({ 3: 4, 4: 4 });
  });

  test('all while leadership is handed over, to whoever it is', () => {
    const core = leaderAfterTrial();
    expect(put(core)).toEqual({ 2: 3 });
    core.transferLeader(3);
    expect(sentTo(run(core))).toEqual({ 3: 3 });
  });

  test('whoever leadership is handed over to, as soon as it takes entries', () => {
    const core = leaderAfterTrial();
    core.reportUnreachable(3);
    run(core);
    expect(put(core)).toEqual({ 2: 3 });
    core.transferLeader(3);
    run(core);
    ack(core, 3, 2);
    expect(sentTo(run(core))).toEqual({ 3: 3 });
  });

  test('whoever lacks more than a few', () => {
    const core = leaderAfterTrial([2], {
      config: { maxUncommittedBytes: 1_000_000, maxEntryBytesPerMessage: 1_000_000 },
    });
    for (let i = 0; i < 64; i++) {
      expect(put(core)).toEqual({ 2: 3 + i });
      ack(core, 2);
    }
    expect(put(core)).toEqual({ 2: 67, 3: 67 });
    ack(core, 2);
    core.propose(new Uint8Array(5000));
    expect(sentTo(run(core))).toEqual({ 2: 68, 3: 68 });
  });

  test('a follower that is probed', () => {
    const core = leaderAfterTrial();
    core.reportUnreachable(3);
    answerHeartbeat(core, 3);
    expect(put(core)).toEqual({ 2: 3, 3: 3 });
  });
});

describe('entries that wait leave', () => {
  function waiting(): RaftCore {
    const core = leaderAfterTrial();
    expect(put(core)).toEqual({ 2: 3 });
    ack(core, 2);
    expect(core.appendsWait).toBe(true);
    return core;
  }

  test('together', () => {
    const core = waiting();
    put(core);
    ack(core, 2);
    tick(core, 1);
    const [append] = ofType(run(core), 'append');
    expect(append).toMatchObject({ to: 3, prevIndex: 2, entries: [{ index: 3 }, { index: 4 }] });
    expect(core.appendsWait).toBe(false);
  });

  test.each([
    { name: 'the next tick', release: (core: RaftCore) => tick(core, 1) },
    { name: 'who waits for what is committed', release: (core: RaftCore) => core.tellCommits() },
  ])('with $name, also when more has come behind them in the same turn', ({ release }) => {
    const core = waiting();
    run(core);
    release(core);
    expect(put(core)).toEqual({ 2: 4, 3: 4 });
    ack(core, 2);
    expect(put(core)).toEqual({ 2: 5 });
  });

  test('when nothing has come behind them from one review to the next', () => {
    const core = waiting();
    expect(core.reviewAppends()).toBe(true);
    put(core);
    ack(core, 2);
    expect(core.reviewAppends()).toBe(true);
    expect(core.hasReady() && sentTo(run(core))).not.toHaveProperty('3');
    expect(core.reviewAppends()).toBe(false);
    expect(sentTo(run(core))).toEqual({ 3: 4 });
  });

  test('when they were there at the last review and are not committed', () => {
    const core = leaderAfterTrial();
    put(core);
    expect(core.reviewAppends()).toBe(true);
    expect(core.reviewAppends()).toBe(false);
    expect(sentTo(run(core))).toEqual({ 3: 3 });
  });

  test('when somebody waits for what is committed to be applied everywhere', () => {
    const core = waiting();
    run(core);
    core.tellCommits();
    expect(sentTo(run(core))).toEqual({ 3: 3 });
  });

  test('never, if somebody else has come to lead', () => {
    const core = waiting();
    core.step({ type: 'heartbeat', from: 2, to: 1, term: core.term + 1, commit: 0, readContext: 0 });
    expect([core.appendsWait, core.reviewAppends(), sentTo(run(core))]).toEqual([false, false, {}]);
    tick(core, ELECTION_TICKS - 1);
    expect(sentTo(run(core))).toEqual({});
  });
});
