import { type Logger, loopSection, recordSections, silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { beforeEach, expect, test } from 'vitest';
import { StallLog } from './stall-log.ts';

let clock: ManualClock;
let said: object[];
let log: StallLog;
beforeEach(() => {
  clock = new ManualClock();
  said = [];
  const logger: Logger = { ...silentLogger, warn: (fields) => void said.push(fields) };
  log = new StallLog({ clock, logger });
});

test('the first stall is said at once, further ones in one line a minute, with their number and the worst', () => {
  for (const elapsedMs of [300.4, 500, 1_999.6, 700]) log.stalled(elapsedMs);
  expect(said).toEqual([{ elapsedMs: 300 }]);
  clock.advance(59_999);
  expect(said).toHaveLength(1);
  clock.advance(1);
  expect(said.splice(0)).toEqual([{ elapsedMs: 300 }, { stalls: 3, worstMs: 2_000 }]);
  log.stalled(400);
  clock.advance(60_000);
  expect(said.splice(0)).toEqual([{ stalls: 1, worstMs: 400 }]);
});

test('after a minute without a stall the next one is said at once again, and no timer is left between', () => {
  log.stalled(300);
  clock.advance(60_000);
  expect(clock.pendingTimers).toBe(0);
  log.stalled(900);
  expect(said).toEqual([{ elapsedMs: 300 }, { elapsedMs: 900 }]);
});

test('a node that stops says what it had not said yet, and leaves no timer', () => {
  for (const elapsedMs of [300, 500]) log.stalled(elapsedMs);
  log.stop();
  expect(said).toEqual([{ elapsedMs: 300 }, { stalls: 1, worstMs: 500 }]);
  expect(clock.pendingTimers).toBe(0);
  log.stop();
  expect(said).toHaveLength(2);
});

test('a stall names the longest section of work within it, and a summary that of the worst stall', () => {
  const end = recordSections({ clock, leastMs: 5, onLong: () => undefined });
  try {
    loopSection('split', () => clock.advance(280));
    log.stalled(300);
    clock.advance(100);
    log.stalled(50);
    loopSection('leaseEnd', () => clock.advance(400));
    log.stalled(420);
    loopSection('raftTurn', () => clock.advance(200));
    log.stalled(210);
    log.stop();
  } finally {
    end();
  }
  expect(said).toEqual([
    { elapsedMs: 300, section: 'split', sectionMs: 280 },
    { stalls: 3, worstMs: 420, section: 'leaseEnd', sectionMs: 400 },
  ]);
});
