import { describe, expect, test } from 'vitest';
import {
  ack,
  answerHeartbeat,
  append,
  appendsTo,
  elect,
  entries,
  makeCore,
  makeLeader,
  propose,
  reject,
  run,
  take,
} from '../../test/support/core/core-kit.ts';
import type { RaftInitial } from './config.ts';
import { entryBytes, outlineOf } from './log.ts';
import { confOf } from './membership/membership.ts';
import type { RaftCore } from './raft.ts';
import type { Entry, EntryRead } from './types.ts';

const ZERO = { index: 0, term: 0 };
const ALL = Number.POSITIVE_INFINITY;

/** What makes a replica find `log` on disk, all of it in memory. */
function restartedWith(log: readonly Entry[]): Partial<RaftInitial> {
  return { hardState: { term: log.at(-1)?.term ?? 0, vote: 0, commit: 0 }, entries: log };
}

function wanted(core: RaftCore): EntryRead[] {
  return take(core).readies.flatMap((ready) => ready.entriesWanted);
}

/** A follower that has restarted with a log of which nothing is in memory. */
function restarted(log: readonly Entry[], commit: number, applied = 0): RaftCore {
  return makeCore({
    hardState: { term: log.at(-1)?.term ?? 0, vote: 0, commit },
    start: ZERO,
    entries: [],
    outline: outlineOf(ZERO, log),
    applied,
    restarted: true,
  });
}

describe('entries to be applied that left memory', () => {
  const log = entries(1, 1, 1, 2, 2, 2);

  test('are asked for once, and handed out in order when they come', () => {
    const core = restarted(log, 4);
    const [read, ...more] = wanted(core);
    expect(more).toEqual([]);
    expect(read).toMatchObject({ reader: 1, from: 1, to: 4 });
    expect(core.hasReady()).toBe(false);
    core.entriesRead(read as EntryRead, log.slice(0, 2));
    const { committed, readies } = take(core);
    expect(committed).toEqual(log.slice(0, 2));
    expect(readies.flatMap((r) => r.entriesWanted)).toMatchObject([{ reader: 1, from: 3, to: 4 }]);
  });

  test('are followed by those in memory', () => {
    const core = restarted(log, 4);
    append(core, { term: 2, prev: [5, 2], entries: entries(6, 2), commit: 6 });
    const [read] = wanted(core);
    expect(read).toMatchObject({ from: 1, to: 5 });
    core.entriesRead(read as EntryRead, log);
    expect(take(core).committed).toEqual([...log, ...entries(6, 2)]);
  });

  test('are read one ahead of what is being applied, not more', () => {
    const size = entryBytes(log[0] as Entry);
    const core = makeCore({
      hardState: { term: 2, vote: 0, commit: 5 },
      entries: [],
      outline: outlineOf(ZERO, log),
      config: { maxEntryBytesPerMessage: size },
      restarted: true,
    });
    for (const index of [1, 2]) {
      const [read] = wanted(core);
      expect(read?.from).toBe(index);
      core.entriesRead(read as EntryRead, log.slice(index - 1, index));
    }
    expect(wanted(core)).toEqual([]);
    core.appliedTo(1);
    expect(wanted(core)).toMatchObject([{ from: 3 }]);
  });

  test('do not count when a snapshot has taken their place meanwhile', () => {
    const core = restarted(log, 4);
    const [read] = wanted(core);
    const meta = { index: 4, term: 2, conf: confOf([1, 2, 3]) };
    expect(core.acceptsSnapshot(2, 2, { ...meta, index: 7 })).toBe(true);
    core.entriesRead(read as EntryRead, log.slice(0, 4));
    expect(take(core).committed).toEqual([]);
    core.installed({ ...meta, index: 7 });
    expect(take(core).committed).toEqual([]);
    append(core, { term: 2, prev: [7, 2], entries: entries(8, 2), commit: 8 });
    expect(take(core).committed).toEqual(entries(8, 2));
  });

  test('that came before a snapshot was offered are forgotten when it is installed, and used when it breaks off', () => {
    for (const installs of [true, false]) {
      const core = restarted(log, 4);
      const [read] = wanted(core);
      core.entriesRead(read as EntryRead, log.slice(0, 4));
      const meta = { index: 7, term: 2, conf: confOf([1, 2, 3]) };
      expect(core.acceptsSnapshot(2, 2, meta)).toBe(true);
      expect(take(core).committed).toEqual([]);
      if (installs) core.installed(meta);
      else core.installFailed();
      if (installs) append(core, { term: 2, prev: [7, 2], entries: entries(8, 2), commit: 8 });
      expect(take(core).committed).toEqual(installs ? entries(8, 2) : log.slice(0, 4));
    }
  });

  test('a membership change among them keeps the replica from campaigning until it is applied', () => {
    const conf = log.map((entry): Entry => (entry.index === 3 ? { ...entry, type: 'conf' } : entry));
    for (const [commit, campaigns] of [
      [2, true],
      [3, false],
    ] as const) {
      const core = restarted(conf, commit);
      for (let i = 0; i < 40; i++) core.tick();
      expect(take(core).messages.some((m) => m.type === 'preVote')).toBe(campaigns);
    }
  });
});

describe('entries to be sent that left memory', () => {
  /** A leader of term 1 with entries 1..4, of which follower 3 has none. */
  function leader(): RaftCore {
    const core = makeLeader({ silent: [3] });
    for (const text of ['a', 'b', 'c']) propose(core, text);
    run(core);
    ack(core, 2);
    run(core);
    core.evictTo(ALL);
    reject(core, 3, { index: 0, hint: [0, 0] });
    return core;
  }
  const log = (core: RaftCore): Entry[] => ['', 'a', 'b', 'c'].map((text, i) => entryOf(core, i + 1, text));
  const entryOf = (core: RaftCore, index: number, text: string): Entry => ({
    index,
    term: core.term,
    type: 'normal',
    data: Buffer.from(text),
  });

  test('are asked for, one read for each follower, and sent when they come; the others are not held up', () => {
    const core = leader();
    answerHeartbeat(core, 3);
    const [read, ...more] = wanted(core);
    expect(more).toEqual([]);
    expect(read).toMatchObject({ reader: 3, from: 1, to: 4 });
    answerHeartbeat(core, 3);
    propose(core, 'd');
    const meanwhile = take(core);
    expect(meanwhile.readies.flatMap((r) => r.entriesWanted)).toEqual([]);
    expect(appendsTo(meanwhile.messages, 2)[0]?.entries.map((e) => e.index)).toEqual([5]);
    core.entriesRead(read as EntryRead, log(core));
    const sent = appendsTo(take(core).messages, 3);
    expect(sent.map((m) => [m.prevIndex, m.entries.map((e) => e.index)])).toEqual([[0, [1, 2, 3, 4]]]);
    ack(core, 3, 4);
    expect(appendsTo(take(core).messages, 3)[0]?.entries.map((e) => e.index)).toEqual([5]);
  });

  test('are dropped when the follower waits elsewhere by then', () => {
    const core = leader();
    answerHeartbeat(core, 3);
    const [read] = wanted(core);
    ack(core, 3, 2);
    const again = take(core);
    core.entriesRead(read as EntryRead, log(core));
    const sent = [...again.messages, ...take(core).messages];
    expect(appendsTo(sent, 3).filter((m) => m.prevIndex < 2)).toEqual([]);
  });

  test('of a branch that was truncated meanwhile are dropped, and asked for again (B2)', () => {
    const old = entries(1, 1, 1, 1);
    const core = makeLeader({ ...restartedWith(old), silent: [2, 3] });
    const branch = [...old, { index: 4, term: core.term, type: 'normal' as const, data: Buffer.alloc(0) }];
    core.evictTo(ALL);
    reject(core, 3, { index: 3, hint: [0, 0] });
    const [read] = wanted(core);
    expect(read).toMatchObject({ reader: 3, from: 1, to: 4 });
    const term = core.term + 1;
    append(core, { term, prev: [1, 1], entries: entries(2, term, term) });
    run(core);
    core.evictTo(ALL);
    elect(core);
    reject(core, 3, { index: 3, hint: [0, 0] });
    expect(wanted(core)).toEqual([]); // the old read is under way still (B1)
    core.entriesRead(read as EntryRead, branch);
    const { messages, readies } = take(core);
    expect(appendsTo(messages, 3).flatMap((m) => m.entries)).toEqual([]);
    expect(readies.flatMap((r) => r.entriesWanted)).toMatchObject([{ reader: 3, from: 1, to: 3 }]);
  });

  test('count for the read that was asked for only, and once', () => {
    const core = leader();
    answerHeartbeat(core, 3);
    const [read] = wanted(core);
    core.entriesRead({ ...(read as EntryRead) }, log(core));
    expect(appendsTo(take(core).messages, 3)).toEqual([]);
    core.entriesRead(read as EntryRead, log(core));
    expect(appendsTo(take(core).messages, 3)).toHaveLength(1);
    core.entriesRead(read as EntryRead, log(core));
    expect(appendsTo(take(core).messages, 3)).toEqual([]);
  });

  test('that are gone although nothing was truncated or compacted stop the node: the disk has lost them (B4)', () => {
    const core = leader();
    answerHeartbeat(core, 3);
    const [read] = wanted(core);
    expect(() => core.entriesRead(read as EntryRead, [])).toThrow('has lost entries');
  });

  test('that are compacted while they are read lead to a snapshot', () => {
    const core = leader();
    answerHeartbeat(core, 3);
    const [read] = wanted(core);
    core.compactTo(4);
    core.entriesRead(read as EntryRead, []);
    expect(take(core).readies.flatMap((r) => r.snapshotsWanted)).toEqual([3]);
  });
});

describe('limits in bytes', () => {
  test('count what is proposed and what is applied although the entries left memory', () => {
    const bytes = 16 + 100;
    const core = makeLeader({ config: { maxUncommittedBytes: 2 * bytes, maxApplyingBytes: 2 * bytes } });
    const data = Buffer.alloc(100);
    expect([core.propose(data), core.propose(data)].every((r) => 'index' in r)).toBe(true);
    while (core.hasReady()) {
      const { persist } = core.ready();
      if (persist !== undefined) core.persisted(persist.mark);
      core.evictTo(ALL);
    }
    expect(core.propose(data)).toEqual({ refused: 'queueFull' });
    ack(core, 2, 3);
    expect([core.propose(data), core.propose(data)].every((r) => 'index' in r)).toBe(true);
  });
});
