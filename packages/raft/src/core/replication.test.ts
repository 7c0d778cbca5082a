import { describe, expect, test } from 'vitest';
import {
  ack,
  answerHeartbeat,
  appendsTo,
  entries,
  HEARTBEAT_TICKS,
  makeCore,
  makeLeader,
  ofType,
  progressOf,
  propose,
  reject,
  run,
  take,
  tick,
} from '../../test/support/core/core-kit.ts';
import { confOf, EMPTY_CONF } from './membership/membership.ts';

describe('a leader and its fsync', () => {
  test('entries go to followers before the own fsync', () => {
    const core = makeLeader();
    propose(core, 'a');
    const ready = core.ready();
    expect(appendsTo([...ready.messages], 2)[0]?.entries.map((e) => e.index)).toEqual([2]);
    expect(ready.persist?.entries.map((e) => e.index)).toEqual([2]);
  });

  test('the own log does not count before the own fsync', () => {
    const core = makeLeader();
    propose(core, 'a');
    const { marks } = take(core);
    ack(core, 2, 2);
    expect(core.commit).toBe(1);
    for (const mark of marks) core.persisted(mark);
    expect(core.commit).toBe(2);
  });

  test('followers alone can make the quorum', () => {
    const core = makeLeader();
    propose(core, 'a');
    take(core);
    ack(core, 2, 2);
    ack(core, 3, 2);
    expect(core.commit).toBe(2);
  });

  test('several fsyncs may be under way, and each counts what it covers', () => {
    const core = makeLeader();
    propose(core, 'a');
    const first = take(core).marks;
    propose(core, 'b');
    const second = take(core).marks;
    ack(core, 2, 3);
    for (const mark of first) core.persisted(mark);
    expect(core.commit).toBe(2);
    for (const mark of second) core.persisted(mark);
    expect(core.commit).toBe(3);
  });

  test('marks are reported in order, each once', () => {
    const core = makeLeader();
    propose(core, 'a');
    const [mark] = take(core).marks;
    expect(() => core.persisted({ sequence: (mark?.sequence ?? 0) + 1 })).toThrow('in order');
    core.persisted({ sequence: mark?.sequence ?? 0 });
    expect(() => core.persisted({ sequence: mark?.sequence ?? 0 })).toThrow('in order');
  });

  test('a commit alone asks for no fsync', () => {
    const core = makeLeader();
    propose(core, 'a');
    run(core);
    ack(core, 2, 2);
    const { marks, committed } = take(core);
    expect(marks).toEqual([]);
    expect(committed.map((e) => e.index)).toEqual([2]);
  });
});

describe('committing', () => {
  test('a leader commits only entries of its own term by counting replicas', () => {
    const old = { entries: entries(1, 1, 1), hardState: { term: 1, vote: 0, commit: 0 } };
    const core = makeLeader({ ...old, silent: [2, 3] });
    expect(core.status()).toMatchObject({ role: 'leader', term: 2, lastIndex: 3 });
    ack(core, 2, 2);
    ack(core, 3, 2);
    expect(core.commit).toBe(0);
    ack(core, 2, 3);
    expect(core.commit).toBe(3);
  });

  test('a learner is sent entries and does not count', () => {
    const core = makeLeader({ learners: [4] });
    propose(core, 'a');
    expect(appendsTo(run(core), 4).length).toBe(1);
    ack(core, 4, 2);
    expect(core.commit).toBe(1);
    ack(core, 3, 2);
    expect(core.commit).toBe(2);
  });

  test('a joint configuration needs both majorities', () => {
    const core = makeLeader();
    core.applyConf({ ...EMPTY_CONF, voters: [1, 4, 5], votersOutgoing: [1, 2, 3] });
    propose(core, 'a');
    run(core);
    ack(core, 2, 2);
    expect(core.commit).toBe(1);
    ack(core, 4, 2);
    expect(core.commit).toBe(2);
  });

  test('a smaller quorum commits what was waiting', () => {
    const core = makeLeader();
    propose(core, 'a');
    run(core);
    core.applyConf(confOf([1]));
    expect(core.commit).toBe(2);
  });

  test('a leader that is no longer a voter steps down', () => {
    const core = makeLeader();
    core.applyConf(confOf([2, 3], [1]));
    expect(core.role).toBe('follower');
  });

  test('committed entries are handed out once each, in order, within the bound', () => {
    const core = makeLeader({ voters: [1], config: { maxApplyingBytes: 60 } });
    for (const text of ['aaaa', 'bbbb', 'cccc', 'dddd', 'eeee', 'ffff']) propose(core, text);
    const { marks } = take(core);
    for (const mark of marks) core.persisted(mark);
    const first = take(core).committed.map((e) => e.index);
    expect(first).toEqual([2, 3, 4]); // 20 bytes each
    expect(core.hasReady()).toBe(false);
    core.appliedTo(3);
    expect(take(core).committed.map((e) => e.index)).toEqual([5, 6]);
    core.appliedTo(6);
    expect(take(core).committed.map((e) => e.index)).toEqual([7]);
  });
});

describe('proposals', () => {
  test('are refused by others than the leader', () => {
    expect(makeCore().propose(Buffer.from('x'))).toEqual({ refused: 'notLeader' });
  });

  test('are refused above the limit of uncommitted bytes, and taken again once entries commit', () => {
    const core = makeLeader({ config: { maxUncommittedBytes: 40 } });
    expect(core.propose(Buffer.alloc(500))).toMatchObject({ index: 2 });
    expect(core.propose(Buffer.from('x'))).toEqual({ refused: 'queueFull' });
    run(core);
    ack(core, 2);
    expect(core.propose(Buffer.from('x'))).toMatchObject({ index: 3 });
  });

  test('all proposals of a turn share one message', () => {
    const core = makeLeader();
    for (const text of ['a', 'b', 'c']) propose(core, text);
    expect(appendsTo(run(core), 2).map((m) => m.entries.length)).toEqual([3]);
  });
});

describe('flow to a follower', () => {
  test('a probing follower gets one message, and no more before its answer', () => {
    const core = makeLeader({ silent: [3] });
    propose(core, 'a');
    expect(appendsTo(run(core), 3)).toEqual([]);
    answerHeartbeat(core, 3);
    expect(appendsTo(run(core), 3).map((m) => m.prevIndex)).toEqual([0]);
    ack(core, 3, 2);
    expect(progressOf(core, 3)).toMatchObject({ state: 'replicate', match: 2, next: 3, steady: true });
  });

  test('a probing follower is asked again at the next interval, without entries, even if no heartbeat is answered', () => {
    const core = makeLeader({ silent: [3] });
    tick(core, HEARTBEAT_TICKS);
    expect(appendsTo(run(core), 3)).toMatchObject([{ prevIndex: 0, entries: [] }]);
  });

  test('a replicating follower is sent message after message, up to the limit of messages', () => {
    const core = makeLeader({ config: { maxInflightMessages: 2 } });
    const sent: number[] = [];
    for (const text of ['a', 'b', 'c', 'd']) {
      propose(core, text);
      sent.push(...appendsTo(run(core), 2).map((m) => m.prevIndex));
    }
    expect(sent).toEqual([1, 2]);
    ack(core, 2, 2);
    expect(appendsTo(run(core), 2).map((m) => [m.prevIndex, m.entries.length])).toEqual([[3, 2]]);
  });

  test('and up to the limit of bytes', () => {
    const core = makeLeader({ config: { maxInflightBytes: 30, maxEntryBytesPerMessage: 20 } });
    for (const text of ['a', 'b', 'c', 'd']) propose(core, text);
    expect(appendsTo(run(core), 2).map((m) => m.entries.length)).toEqual([1, 1]);
  });

  test('a message carries entries up to its limit', () => {
    const core = makeLeader({ config: { maxEntryBytesPerMessage: 40 } });
    for (const text of ['a', 'b', 'c']) propose(core, text);
    expect(appendsTo(run(core), 2).map((m) => m.entries.length)).toEqual([2, 1]);
  });

  test('what was lost on the way is found by the answer to a heartbeat', () => {
    const core = makeLeader();
    propose(core, 'a');
    run(core); // lost
    tick(core, HEARTBEAT_TICKS);
    run(core);
    tick(core, 1);
    answerHeartbeat(core, 2);
    expect(appendsTo(run(core), 2)).toMatchObject([{ prevIndex: 2, entries: [] }]);
    reject(core, 2, { index: 2, hint: [1, 1] });
    expect(appendsTo(run(core), 2).map((m) => m.entries.map((e) => e.index))).toEqual([[2]]);
  });

  test('and without any answer to heartbeats', () => {
    const core = makeLeader();
    run(core);
    tick(core, HEARTBEAT_TICKS);
    run(core);
    propose(core, 'a');
    run(core); // lost
    tick(core, HEARTBEAT_TICKS);
    expect(appendsTo(run(core), 2)).toMatchObject([{ prevIndex: 2, entries: [] }]);
  });

  test('a rejection skips whole terms on the leader side', () => {
    const log = entries(1, 1, 1, 1, 4, 4, 4);
    const core = makeLeader({ entries: log, hardState: { term: 4, vote: 0, commit: 0 }, silent: [2, 3] });
    reject(core, 2, { index: 6, hint: [6, 3] }); // the follower has term 3 there, this log jumps from 1 to 4
    expect(appendsTo(run(core), 2)).toMatchObject([{ prevIndex: 3, prevTerm: 1 }]);
  });

  test('an answer to an older message changes nothing', () => {
    const core = makeLeader();
    propose(core, 'a');
    run(core);
    reject(core, 2, { index: 1, hint: [0, 0] });
    expect(progressOf(core, 2)).toMatchObject({ state: 'replicate', match: 1, next: 3 });
    ack(core, 2, 0);
    expect(progressOf(core, 2)).toMatchObject({ match: 1 });
  });

  test('a follower reported unreachable is probed, and not steady', () => {
    const core = makeLeader();
    core.reportUnreachable(2);
    expect(progressOf(core, 2)).toMatchObject({ state: 'probe', steady: false });
    propose(core, 'a');
    expect(appendsTo(run(core), 2)).toEqual([]);
    answerHeartbeat(core, 2);
    expect(appendsTo(run(core), 2)).toMatchObject([{ prevIndex: 1 }]);
  });

  test('a heartbeat commits at most what the follower is known to hold', () => {
    const core = makeLeader({ silent: [3] });
    propose(core, 'a');
    run(core);
    ack(core, 2, 2);
    tick(core, HEARTBEAT_TICKS);
    expect(ofType(run(core), 'heartbeat').map((m) => [m.to, m.commit])).toEqual([
      [2, 2],
      [3, 0],
    ]);
  });

  test('a follower whose commit lags gets an empty append, without heartbeats of the core', () => {
    const core = makeLeader({ config: { checkQuorum: false } });
    for (const { replica, epoch } of core.steadyFollowers()) core.mergeHeartbeats(replica, epoch, true);
    propose(core, 'a');
    run(core);
    ack(core, 2, 2, 1);
    ack(core, 3, 2, 2);
    tick(core, 2 * HEARTBEAT_TICKS);
    const sent = run(core);
    expect(ofType(sent, 'heartbeat')).toEqual([]);
    expect(appendsTo(sent, 2)).toMatchObject([{ entries: [], commit: 2 }]);
    expect(appendsTo(sent, 3)).toEqual([]);
    ack(core, 2, 2, 2);
    tick(core, 2 * HEARTBEAT_TICKS);
    expect(run(core)).toEqual([]);
  });

  test('followers that do not know what is committed are told at once when somebody waits for them', () => {
    const core = makeLeader({ config: { checkQuorum: false } });
    propose(core, 'a');
    run(core);
    ack(core, 2, 2, 1);
    ack(core, 3, 2, 2);
    run(core);
    core.tellCommits();
    const sent = run(core);
    expect(appendsTo(sent, 2)).toMatchObject([{ entries: [], prevIndex: 2, commit: 2 }]);
    expect(appendsTo(sent, 3)).toEqual([]);
    const follower = makeCore();
    follower.tellCommits();
    expect(run(follower)).toEqual([]);
  });
});
