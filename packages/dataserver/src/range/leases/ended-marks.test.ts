import { EMPTY_BYTES } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { LockCommand, LockId, SessionRef } from '@remora/lock';
import type { Command } from '@remora/protocol';
import { beforeEach, describe, expect, test } from 'vitest';
import { StateBed } from '../../../test/support/state-bed.ts';
import { LOCKS } from '../../state/leases/attachments.ts';
import { lockReader } from '../../state/locks/engine-lock-view.ts';
import { LOCK_LIMITS, LockLimits } from '../locks/lock-limits.ts';
import { EndedMarks } from './ended-marks.ts';

/** How long a mark lives. */
const MARK_MS = 127_000;

const lockOf = (name: string): LockId => ({ namespace: 'n', name: Buffer.from(name) });

/** A range whose leader sees to marks; what it proposes waits until the test decides it. */
class MarksBed extends StateBed {
  readonly clock = new ManualClock();
  readonly proposed: { readonly command: Command; readonly done: () => void }[] = [];
  readonly marks = new EndedMarks({
    clock: this.clock,
    view: lockReader(this.engine),
    routed: () => this.state.bounds.routed,
    rangeTimeMs: () => this.timeMs,
    propose: (command, done) => void this.proposed.push({ command, done }),
  });
  session: SessionRef = { lease: 0n, incarnation: 0 };
  /** The most that were proposed and not decided. */
  undecidedMax = 0;

  async open(): Promise<void> {
    this.onMarkLeft = (mark) => this.marks.left(mark);
    const result = await this.ok({ type: 'leaseGrant', id: 7n, ttlMs: 5_000, attributes: {} });
    if (result.type === 'leaseGrant') this.session = { lease: 7n, incarnation: result.incarnation };
  }

  acquire(name: string, token = 't'): Extract<LockCommand, { type: 'acquire' }> {
    const [lock, owner] = [lockOf(name), { session: this.session, token }];
    const times = { waitUntilMs: 0, deadlineMs: this.timeMs + 7_000, depthMax: 1, attempt: 1 };
    return { type: 'acquire', lock, owner, data: EMPTY_BYTES, wait: true, ...times };
  }

  lock(command: LockCommand): Promise<unknown> {
    return this.ok({ type: 'lock', command });
  }

  /** Acquired, and released by one whose acquire may have been sent twice. */
  async useOnce(names: readonly string[], token = 't'): Promise<void> {
    const deadlineMs = this.timeMs + MARK_MS;
    await this.batch(names.map((name) => ({ command: { type: 'lock', command: this.acquire(name, token) } })));
    await this.batch(
      names.map((name) => {
        const { lock, owner } = this.acquire(name, token);
        return {
          command: { type: 'lock', command: { type: 'release', lock, owner, all: true, attempt: 2, deadlineMs } },
        };
      }),
    );
  }

  /** Lets time pass, and applies what is proposed. */
  async pass(ms: number, stepMs = 100): Promise<void> {
    for (let passed = 0; passed < ms; passed += stepMs) {
      this.timeMs += stepMs;
      this.clock.advance(stepMs);
      this.undecidedMax = Math.max(this.undecidedMax, this.proposed.length);
      const decided = this.proposed.splice(0);
      if (decided.length > 0) await this.batch(decided);
      for (const { done } of decided) done();
    }
  }

  /** Rows of locks, and those that belong to the session. */
  get left(): readonly number[] {
    const { leaseOwnership, bounds } = this.state;
    const rows = this.engine.scanResident({ ...LOCKS, limit: 0 });
    return [rows.length, leaseOwnership.locksOf(7n, bounds.routed, 0).length];
  }
}

const names = (count: number): string[] => Array.from({ length: count }, (_, i) => `l${i}`);

describe('marks whose end has passed', () => {
  let bed: MarksBed;
  beforeEach(async () => {
    bed = new MarksBed();
    await bed.open();
  });

  test('count against no session that holds nothing: it is let in to one lock after the other', async () => {
    const limits = new LockLimits({ ...LOCK_LIMITS, sessionLocksMax: 20 }, bed.state, bed.engine);
    bed.marks.start();
    for (const name of names(100)) {
      expect(limits.refusal({ type: 'lock', command: bed.acquire(name) }, 3)).toBeUndefined();
      await bed.useOnce([name]);
      await bed.pass(20_000, 1_000);
    }
    await bed.pass(2 * MARK_MS, 1_000);
    expect(bed.left).toEqual([0, 0]);
  });

  test('go with all that was kept of the lock, not before their end, and leave nothing to be watched', async () => {
    bed.marks.start();
    await bed.useOnce(['a']);
    await bed.pass(MARK_MS, 1_000);
    expect([bed.left, bed.undecidedMax]).toEqual([[3, 1], 0]); // the head, the owner, and the mark by its end
    await bed.pass(500);
    expect([bed.left, bed.clock.pendingTimers, bed.undecidedMax]).toEqual([[0, 0], 0, 1]);
  });

  test('are found in their rows by a leader that was told of none, after a restart too (EM2)', async () => {
    await bed.useOnce(names(700)); // more rows than one search reads
    bed.timeMs += MARK_MS + 1;
    await bed.checkpoint();
    bed.crash();
    expect(bed.left).toEqual([2_100, 700]);
    bed.marks.start();
    await bed.pass(2_000);
    expect([bed.left, bed.clock.pendingTimers]).toEqual([[0, 0], 0]);
  });

  test('go without anything else that is kept of the lock: who holds it, who waits, and other marks', async () => {
    bed.marks.start();
    await bed.useOnce(['a', 'b', 'c'], 'gone');
    await bed.pass(MARK_MS, 1_000);
    await bed.lock(bed.acquire('c', 'later'));
    await bed.lock(bed.acquire('b', 'holds'));
    await bed.lock(bed.acquire('b', 'waits'));
    await bed.useOnce(['c'], 'later');
    await bed.pass(1_000);
    const asked = [await bed.lock(bed.acquire('b', 'holds')), await bed.lock(bed.acquire('b', 'waits'))];
    expect(asked).toMatchObject([{ result: { type: 'granted' } }, { result: { type: 'queued' } }]);
    expect(bed.left).toEqual([3 + 3, 2]);
  });

  test('are cleared a bounded number at a time, all of one lock as well', async () => {
    bed.marks.start();
    await bed.useOnce(names(800));
    for (let i = 0; i < 50; i++) await bed.useOnce(['many'], `t${i}`);
    bed.timeMs += MARK_MS;
    await bed.pass(2_500);
    expect([bed.left, bed.undecidedMax]).toEqual([[0, 0], 250]);
  });

  test('are seen to again when a command came to nothing, and when the range has other keys', async () => {
    bed.marks.start();
    await bed.useOnce(['a']);
    bed.timeMs += MARK_MS + 1;
    bed.clock.advance(100);
    bed.proposed.splice(0)[0]?.done();
    bed.clock.advance(100);
    expect(bed.proposed.length).toBe(1);
    bed.marks.keysChanged();
    bed.proposed.length = 0; // decided by whoever has the keys
    await bed.pass(300);
    expect(bed.left).toEqual([0, 0]);
  });

  test('are seen to by no replica that does not lead', async () => {
    await bed.useOnce(['a']);
    bed.marks.start();
    bed.marks.stop();
    await bed.useOnce(['b']);
    bed.marks.keysChanged();
    await bed.pass(2 * MARK_MS, 1_000);
    expect([bed.left, bed.undecidedMax, bed.clock.pendingTimers]).toEqual([[6, 2], 0, 0]);
  });
});
