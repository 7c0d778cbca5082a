import { InvariantError, ManualClock } from '@remora/base';
import { describe, expect, test } from 'vitest';
import { outlineOf } from '../../core/log.ts';
import { confOf } from '../../core/membership.ts';
import type { Entry, LogPosition } from '../../core/types.ts';
import type { RecoveredGroup, StateMachine } from '../ports.ts';
import { ApplyQueue } from './apply-queue.ts';
import { LogTail } from './log-tail.ts';
import { HOST_DEFAULTS, hostOptions } from './options.ts';
import { ReadQueue } from './reads.ts';
import { startState } from './recovery.ts';
import { Ticker } from './ticker.ts';

function entries(from: number, to: number, term: number): Entry[] {
  return Array.from({ length: to - from + 1 }, (_, i) => ({
    index: from + i,
    term,
    type: 'normal' as const,
    data: Buffer.alloc(0),
  }));
}

const at = (index: number, term: number): LogPosition => ({ index, term });

describe('start state', () => {
  const recovered = (start: LogPosition, list: Entry[], commit = 0): RecoveredGroup => ({
    hardState: { term: 3, vote: 7, commit },
    start,
    outline: outlineOf(start, list),
    entries: list,
  });

  test('a new group starts empty and has nothing to write', () => {
    expect(startState({ groupId: 2, applied: at(0, 0), recovered: undefined })).toMatchObject({
      hardState: { term: 0, vote: 0, commit: 0 },
      start: at(0, 0),
      entries: [],
    });
  });

  test('a state machine without a log starts the log at what is applied', () => {
    const state = startState({ groupId: 2, applied: at(10, 5), recovered: undefined });
    expect(state).toMatchObject({
      hardState: { term: 5, vote: 0, commit: 10 },
      start: at(10, 5),
      restartAt: at(10, 5),
    });
  });

  test('entries before what is applied stay for followers, and the commit is at least the applied index', () => {
    const log = recovered(at(2, 1), entries(3, 9, 3), 4);
    expect(startState({ groupId: 2, applied: at(6, 3), recovered: log })).toMatchObject({
      hardState: { term: 3, vote: 7, commit: 6 },
      start: at(2, 1),
      entries: log.entries,
    });
  });

  test.each([
    { name: 'ends before what is applied', applied: at(12, 3) },
    { name: 'holds another branch at what is applied', applied: at(6, 2) },
  ])('a log that $name restarts there and keeps its vote', ({ applied }) => {
    const state = startState({ groupId: 2, applied, recovered: recovered(at(2, 1), entries(3, 9, 3)) });
    expect(state).toMatchObject({
      hardState: { term: 3, vote: 7, commit: applied.index },
      start: applied,
      entries: [],
      restartAt: applied,
    });
  });

  test('a snapshot of a newer term than the durable one brings its term, without a vote', () => {
    const state = startState({ groupId: 2, applied: at(20, 8), recovered: recovered(at(0, 0), entries(1, 9, 3)) });
    expect(state.hardState).toEqual({ term: 8, vote: 0, commit: 20 });
  });

  test('a commit beyond the end of the log is cut to it', () => {
    const state = startState({ groupId: 2, applied: at(0, 0), recovered: recovered(at(0, 0), entries(1, 5, 3), 9) });
    expect(state.hardState.commit).toBe(5);
  });

  test('a gap between what is applied and the log is fatal and says what to do', () => {
    const log = recovered(at(8, 3), entries(9, 12, 3));
    expect(() => startState({ groupId: 2, applied: at(5, 3), recovered: log })).toThrow(InvariantError);
    expect(() => startState({ groupId: 2, applied: at(5, 3), recovered: log })).toThrow(
      /begins after index 8.*only index 5/,
    );
  });

  test('a log that begins at what is applied, in another term, is fatal', () => {
    const log = recovered(at(5, 2), []);
    expect(() => startState({ groupId: 2, applied: at(5, 3), recovered: log })).toThrow(/different histories/);
  });
});

describe('log tail', () => {
  function filled(limits: { entries: number; bytes: number }, count: number, entryBytes: number): LogTail {
    const tail = new LogTail(limits, at(0, 0));
    for (let i = 1; i <= count; i++) tail.advance(at(i, 1), entryBytes);
    return tail;
  }

  test('keeps the limit of entries behind the checkpoint', () => {
    const tail = filled({ entries: 64, bytes: 1e9 }, 1000, 1);
    expect(tail.takeCompaction(0)).toBeUndefined();
    tail.checkpointed(at(900, 1));
    expect(tail.takeCompaction(0)).toEqual(at(836, 1));
    expect(tail.takeCompaction(0)).toBeUndefined();
  });

  test('keeps fewer entries when they are large', () => {
    const tail = filled({ entries: 10_000, bytes: 64_000 }, 1000, 1000);
    tail.checkpointed(at(1000, 1));
    expect(tail.takeCompaction(0)?.index).toBe(936);
  });

  test('with no tail the log goes up to the checkpoint', () => {
    const tail = filled({ entries: 0, bytes: 0 }, 100, 10);
    tail.checkpointed(at(60, 1));
    expect(tail.takeCompaction(0)).toEqual(at(60, 1));
  });

  test('a hold keeps what is behind it until its time is over', () => {
    const tail = filled({ entries: 10, bytes: 1e9 }, 1000, 1);
    const hold = tail.hold(500);
    tail.checkpointed(at(1000, 1));
    expect(tail.takeCompaction(0)).toEqual(at(500, 1));
    hold.untilMs = 100;
    expect(tail.takeCompaction(99)).toBeUndefined();
    expect(tail.takeCompaction(100)).toEqual(at(990, 1));
  });

  test('a hold for long costs a bounded number of positions, and the tail stays right to one part in 512', () => {
    const tail = filled({ entries: 64, bytes: 1e9 }, 100_000, 1);
    tail.hold(10);
    tail.checkpointed(at(100_000, 1));
    expect(tail.takeCompaction(0)?.index ?? 10).toBeLessThanOrEqual(10);
    expect(tail.steps).toBeLessThanOrEqual(1024);
    const free = filled({ entries: 50_000, bytes: 1e9 }, 100_000, 1);
    free.checkpointed(at(100_000, 1));
    expect(free.takeCompaction(0)?.index).toBeGreaterThan(50_000 - 2 * (100_000 / 512));
  });

  test('a restart forgets what was before', () => {
    const tail = filled({ entries: 10, bytes: 1e9 }, 100, 1);
    tail.restart(at(500, 2));
    tail.checkpointed(at(90, 1));
    expect(tail.takeCompaction(0)).toBeUndefined();
    for (let i = 501; i <= 600; i++) tail.advance(at(i, 2), 1);
    tail.checkpointed(at(600, 2));
    expect(tail.takeCompaction(0)).toEqual(at(590, 2));
  });
});

describe('reads', () => {
  test('each call is answered once: applied, dropped, refused or cancelled', () => {
    const reads = new ReadQueue(10);
    const log: string[] = [];
    const add = (name: string) => reads.add((refused) => log.push(`${name}:${refused ?? 'ok'}`));
    const contexts: number[] = [];
    const round = () =>
      reads.startRound((context) => {
        contexts.push(context);
        return undefined;
      });
    add('a');
    add('b');
    round();
    add('c');
    round();
    round();
    expect(contexts).toEqual([1, 2]);
    reads.confirmed([
      { context: 1, index: 5 },
      { context: 9, index: 1 },
    ]);
    reads.applied(4);
    expect(log).toEqual([]);
    reads.applied(5);
    reads.dropped([2, 1]);
    add('d');
    reads.startRound(() => 'notLeader');
    add('e');
    round();
    reads.confirmed([{ context: 4, index: 9 }]);
    add('f');
    reads.dropAll();
    reads.applied(100);
    expect(log).toEqual(['a:ok', 'b:ok', 'c:notLeader', 'd:notLeader', 'e:notLeader', 'f:notLeader']);
  });
});

describe('ticker', () => {
  function ticking() {
    const clock = new ManualClock();
    const counts: number[] = [];
    const stalls: number[] = [];
    const ticker = new Ticker({
      clock,
      tickMs: 50,
      catchUpTicksMax: 2,
      tick: (count) => counts.push(count),
      stalled: (elapsedMs) => stalls.push(elapsedMs),
    });
    ticker.start();
    return { clock, counts, stalls, ticker };
  }

  test('ticks once per interval', () => {
    const { clock, counts, stalls } = ticking();
    clock.advance(1000);
    expect(counts).toEqual(Array.from({ length: 20 }, () => 1));
    expect(stalls).toEqual([]);
  });

  test('makes up for few ticks after a stall, and only after the input that waited', () => {
    const clock = new ManualClock();
    let stalledMs = 0;
    const log: string[] = [];
    const ticker = new Ticker({
      clock: {
        wallMs: () => clock.wallMs(),
        monotonicMs: () => clock.monotonicMs() + stalledMs,
        setTimer: (delayMs, fn) => clock.setTimer(delayMs, fn),
        setImmediate: (fn) => clock.setImmediate(fn),
      },
      tickMs: 50,
      catchUpTicksMax: 2,
      tick: (count) => log.push(`tick ${count}`),
      stalled: (elapsedMs) => log.push(`stalled ${elapsedMs}`),
    });
    ticker.start();
    clock.advance(50);
    // The loop does not run for ten seconds; what came meanwhile is handled in the turn in which the late timer fires.
    clock.setImmediate(() => log.push('input'));
    stalledMs = 10_000;
    clock.fireNext();
    clock.advance(50);
    expect(log).toEqual(['tick 1', 'input', 'stalled 10050', 'tick 2', 'tick 1']);
  });

  test('a stopped ticker ticks no more', () => {
    const { clock, counts, ticker } = ticking();
    clock.advance(50);
    ticker.stop();
    clock.advance(500);
    expect(counts).toEqual([1]);
    expect(clock.pendingTimers).toBe(0);
  });
});

describe('options', () => {
  test('defaults hold, and the object is frozen', () => {
    expect(hostOptions()).toEqual(HOST_DEFAULTS);
    expect(Object.isFrozen(hostOptions({ tickMs: 10 }))).toBe(true);
  });

  test.each([
    { tickMs: 0 },
    { electionTicks: 2, heartbeatTicks: 2 },
    { catchUpTicksMax: 20 },
    { tailEntries: -1 },
    { turnBudgetMs: Number.NaN },
  ])('%o is refused', (given) => {
    expect(() => hostOptions(given)).toThrow(InvariantError);
  });
});

describe('the apply queue', () => {
  test('a snapshot is taken between two calls, although a turn begins the next one at once', async () => {
    const order: string[] = [];
    let finish: (() => void) | undefined;
    const stateMachine: StateMachine = {
      apply: (slice) => {
        order.push(`apply ${slice[0]?.index}`);
        return new Promise<void>((resolve) => {
          finish = () => {
            order.push('applied');
            resolve();
          };
        });
      },
      roleChanged: () => {},
      snapshot: () => {
        throw new Error('not asked for');
      },
      install: () => {
        throw new Error('not asked for');
      },
    };
    const owner = { confAfter: () => confOf([1]), applied: () => {}, resumed: () => queue.step(), failed: () => {} };
    const queue: ApplyQueue = new ApplyQueue(stateMachine, owner, 1);
    queue.push(entries(1, 3, 1));
    const first = queue.whenIdle(() => order.push('snapshot'));
    queue.step(); // the same turn goes on to apply
    await first;
    const second = queue.whenIdle(() => order.push('snapshot'));
    owner.resumed = () => false; // the next turn comes later
    finish?.();
    await second;
    queue.step();
    expect(order).toEqual(['snapshot', 'apply 1', 'applied', 'snapshot', 'apply 2']);
  });
});
