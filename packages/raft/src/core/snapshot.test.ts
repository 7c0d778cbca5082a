import { describe, expect, test } from 'vitest';
import {
  ack,
  answerHeartbeat,
  append,
  appendsTo,
  ELECTION_TICKS,
  elect,
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
  tickUntilCampaign,
} from '../../test/support/core/core-kit.ts';
import { confOf } from './membership/membership.ts';
import type { RaftCore } from './raft.ts';
import type { EntryRead } from './types.ts';

describe('snapshots', () => {
  const meta = { index: 10, term: 2, conf: confOf([1, 2, 3]) };

  function compactedLeader(): RaftCore {
    const core = makeLeader({ silent: [3] });
    propose(core, 'a');
    run(core);
    ack(core, 2);
    run(core);
    core.compactTo(2);
    return core;
  }

  test('a follower that needs compacted entries gets one, once it is heard, and one at a time', () => {
    const core = compactedLeader();
    tick(core, HEARTBEAT_TICKS);
    expect(take(core).readies.flatMap((r) => r.snapshotsWanted)).toEqual([]);
    reject(core, 3, { index: 0, hint: [0, 0] });
    answerHeartbeat(core, 3);
    expect(take(core).readies.flatMap((r) => r.snapshotsWanted)).toEqual([3]);
    expect(progressOf(core, 3)).toMatchObject({ state: 'snapshot' });
    answerHeartbeat(core, 3);
    propose(core, 'b');
    const { messages, readies } = take(core);
    expect(appendsTo(messages, 3)).toEqual([]);
    expect(readies.flatMap((r) => r.snapshotsWanted)).toEqual([]);
  });

  test('a replicating follower that falls silent while its next entries are read back, and compacted, gets one when heard', () => {
    const core = makeLeader({ silent: [3] });
    for (const text of ['a', 'b', 'c']) propose(core, text);
    run(core);
    ack(core, 2);
    run(core);
    core.evictTo(4);
    ack(core, 3, 1);
    const [read] = take(core).readies.flatMap((r) => r.entriesWanted);
    expect(read).toMatchObject({ reader: 3, from: 2 });
    tick(core, ELECTION_TICKS);
    expect(progressOf(core, 3)).toMatchObject({ state: 'replicate', active: false });
    core.compactTo(4);
    core.entriesRead(read as EntryRead, []);
    expect(take(core).readies.flatMap((r) => r.snapshotsWanted)).toEqual([]);
    answerHeartbeat(core, 3);
    expect(take(core).readies.flatMap((r) => r.snapshotsWanted)).toEqual([3]);
  });

  test('after a success replication goes on behind the snapshot, after a failure it is tried again', () => {
    for (const ok of [true, false]) {
      const core = compactedLeader();
      answerHeartbeat(core, 3);
      run(core);
      core.reportSnapshot(3, ok, 2);
      expect(progressOf(core, 3)).toMatchObject({ state: 'probe', next: ok ? 3 : 1 });
      if (ok) ack(core, 3, 2);
      else answerHeartbeat(core, 3);
      expect(take(core).readies.flatMap((r) => r.snapshotsWanted)).toEqual(ok ? [] : [3]);
      expect(progressOf(core, 3)?.state).toBe(ok ? 'replicate' : 'snapshot');
    }
  });

  test('one that was asked for in a lost leadership is asked for again by the next one of the same replica', () => {
    const core = compactedLeader();
    answerHeartbeat(core, 3);
    expect(take(core).readies.flatMap((r) => r.snapshotsWanted)).toEqual([3]);
    append(core, { from: 2, term: core.term + 1, prev: [0, 0] });
    run(core);
    expect(core.role).toBe('follower');
    elect(core);
    reject(core, 3, { index: core.status().lastIndex - 1, hint: [0, 0] });
    answerHeartbeat(core, 3);
    expect(take(core).readies.flatMap((r) => r.snapshotsWanted)).toEqual([3]);
  });

  test('a replica without membership takes no entries, from the first on or later ones (F4)', () => {
    const core = makeCore({ id: 4, voters: [] });
    for (const index of [0, 5]) {
      append(core, {
        from: 1,
        term: 1,
        prev: [index, index > 0 ? 1 : 0],
        entries: entries(index + 1, 1, 1),
        commit: 7,
      });
      expect(ofType(run(core), 'appendResponse')).toMatchObject([{ reject: true, index, hintIndex: 0, hintTerm: 1 }]);
    }
    expect(core.status()).toMatchObject({ lastIndex: 0, commit: 0, conf: confOf([]) });
    expect(tickUntilCampaign(core)).toEqual([]);
    const first = makeCore({ id: 4, voters: [1, 2, 3] });
    append(first, { from: 1, term: 1, prev: [0, 0], entries: entries(1, 1, 1), commit: 2 });
    expect(ofType(run(first), 'appendResponse')).toMatchObject([{ reject: false, index: 2 }]);
  });

  test('it gets one of a leader whose log reaches back to the beginning, and a late rejection asks for no other (L6)', () => {
    const core = makeLeader({ learners: [4], silent: [4] });
    const snapshots = () => take(core).readies.flatMap((r) => r.snapshotsWanted);
    reject(core, 4, { index: 0, hint: [0, 0] });
    expect(snapshots()).toEqual([]); // an empty log is fed from the beginning
    reject(core, 4, { index: 0, hint: [0, core.term] });
    expect(snapshots()).toEqual([4]);
    core.reportSnapshot(4, true, 1);
    reject(core, 4, { index: 0, hint: [0, core.term] });
    expect(snapshots()).toEqual([]);
    expect(progressOf(core, 4)).toMatchObject({ state: 'probe', next: 2 });
  });

  test('the receiver restarts its log there, and acknowledges after the fsync', () => {
    const core = makeCore({ entries: entries(1, 1, 1), hardState: { term: 1, vote: 0, commit: 0 } });
    expect(core.acceptsSnapshot(2, 3, meta)).toBe(true);
    run(core);
    core.installed(meta);
    const { messages, marks, readies } = take(core);
    expect(messages).toEqual([]);
    expect(readies[0]?.persist).toMatchObject({ snapshot: meta, entries: [] });
    expect(core.status()).toMatchObject({ commit: 10, applied: 10, firstIndex: 11, lastIndex: 10, conf: meta.conf });
    for (const mark of marks) core.persisted(mark);
    expect(take(core).messages).toMatchObject([{ type: 'appendResponse', reject: false, index: 10 }]);
  });

  test.each([
    { name: 'of an older term', term: 1, index: 10 },
    { name: 'that is older than the commit index', term: 5, index: 1 },
    { name: 'that the log already holds', term: 5, index: 3 },
  ])('one $name is declined', ({ term, index }) => {
    const core = makeCore({ entries: entries(1, 2, 2, 2), hardState: { term: 2, vote: 0, commit: 2 } });
    expect(core.acceptsSnapshot(2, term, { ...meta, index, term: 2 })).toBe(false);
    expect(core.commit).toBe(index === 3 ? 3 : 2);
    const sent = run(core);
    if (term > 1) expect(sent).toMatchObject([{ type: 'appendResponse', reject: false, index: core.commit }]);
  });

  test('while one is received, nothing is appended, handed out or campaigned for', () => {
    const core = makeCore();
    expect(core.acceptsSnapshot(2, 3, meta)).toBe(true);
    expect(core.acceptsSnapshot(2, 3, meta)).toBe(false);
    run(core);
    append(core, { term: 3, prev: [0, 0], entries: entries(1, 3), commit: 1 });
    tick(core, 3 * ELECTION_TICKS);
    expect(take(core)).toMatchObject({ messages: [], committed: [] });
    expect(core.status()).toMatchObject({ role: 'follower', lastIndex: 0 });
    core.installFailed();
    append(core, { term: 3, prev: [0, 0], entries: entries(1, 3), commit: 1 });
    expect(core.status()).toMatchObject({ lastIndex: 1, commit: 1 });
  });

  test('while one is received or installed, votes are given by the log and the HardState that are there', () => {
    const core = makeCore({ entries: entries(1, 1, 1), hardState: { term: 1, vote: 0, commit: 1 } });
    expect(core.acceptsSnapshot(2, 3, meta)).toBe(true);
    run(core);
    tick(core, ELECTION_TICKS);
    const ask = (term: number, lastIndex: number) => {
      core.step({ type: 'vote', from: 3, to: core.id, term, lastIndex, lastTerm: 1, force: false });
      const { messages, marks, readies } = take(core);
      const before = messages.map((m) => m.type === 'voteResponse' && m.reject);
      for (const mark of marks) core.persisted(mark);
      const after = take(core).messages.map((m) => m.type === 'voteResponse' && m.reject);
      return { before, after, vote: readies.at(-1)?.persist?.hardState?.vote };
    };
    expect(ask(4, 1)).toEqual({ before: [true], after: [], vote: 0 });
    expect(ask(5, 2)).toEqual({ before: [], after: [false], vote: 3 });
    core.installed(meta);
    expect(core.status()).toMatchObject({ term: 5, applied: 10 });
  });
});
