import { describe, expect, test } from 'vitest';
import type { LogPosition } from '../../../core/types.ts';
import { LogTail } from './log-tail.ts';

const at = (index: number, term: number): LogPosition => ({ index, term });

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
