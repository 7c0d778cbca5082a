import { ServiceError } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { Command, TxnResolve, TxnState } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { put, type StateBed } from '../../test/support/state-bed.ts';
import { commitAt, decide, neighbours, prepare, prepared } from '../../test/support/txn-bed.ts';
import { IntentResolver } from './intent-resolver.ts';
import { IntentWaitQueue } from './intent-wait-queue.ts';

const COMMITTED: TxnState = { state: 'committed', commit: { type: 'commit', revision: 7, branches: [0] } };

/** The leader of a range whose commands are applied when the test says so, and other ranges that say what it says. */
class IntentResolverBed {
  readonly clock = new ManualClock();
  readonly waits = new IntentWaitQueue();
  readonly pushed: string[] = [];
  readonly told: ((state: TxnState | undefined) => void)[] = [];
  readonly resolving: { readonly command: TxnResolve; readonly done: (error?: ServiceError) => void }[] = [];
  readonly proposed: { readonly command: Command; readonly done: () => void }[] = [];
  timeMs = 1_000;
  serving = true;
  readonly intentResolver: IntentResolver;

  constructor(range: StateBed) {
    this.intentResolver = new IntentResolver({
      ...{ clock: this.clock, waits: this.waits },
      peers: {
        push: ({ txnId }, done) => {
          this.pushed.push(txnId);
          this.told.push(done);
        },
        resolve: (command, done) => void this.resolving.push({ command, done }),
      },
      transactions: () => range.state.transactions,
      rangeTimeMs: () => this.timeMs,
      serving: () => this.serving,
      propose: (command, done) => void this.proposed.push({ command, done }),
    });
    this.intentResolver.wake();
  }

  look(): void {
    this.clock.advance(100);
  }

  wait(txnId: string): void {
    this.waits.add({ txnId, deadlineMs: 0, retry() {}, fail() {} });
  }
}

async function withPart(expiresMs = 2_000): Promise<{ bed: IntentResolverBed; right: StateBed }> {
  const [, right] = neighbours();
  await prepared(right, prepare('t', 1, [put('x', '1')], { expiresMs }));
  return { bed: new IntentResolverBed(right), right };
}

describe("a part of another range's transaction", () => {
  test('is asked after when it has expired, once at a time, and resolved as its record says', async () => {
    const { bed } = await withPart();
    bed.look();
    expect(bed.pushed).toEqual([]);
    bed.timeMs = 2_001;
    bed.look();
    bed.look();
    expect(bed.pushed).toEqual(['t']);
    bed.told[0]?.(COMMITTED);
    expect(bed.proposed.map(({ command }) => command)).toMatchObject([
      { type: 'txnResolve', txnId: 't', part: 1, resolution: { type: 'commit', revision: 7 } },
    ]);
  });

  test('is aborted when its record says so, and not when nobody answers or the transaction may still commit', async () => {
    const { bed } = await withPart();
    bed.timeMs = 2_001;
    for (const state of [undefined, { state: 'pending', remainingMs: 0 } as const]) {
      bed.look();
      bed.told.pop()?.(state);
      expect(bed.proposed).toEqual([]);
    }
    bed.look();
    bed.told.pop()?.({ state: 'aborted' });
    expect(bed.proposed).toMatchObject([{ command: { type: 'txnResolve', resolution: { type: 'abort' } } }]);
  });

  test('is asked after before it expires when it was in the way of another, which comes again', async () => {
    const { bed } = await withPart();
    bed.waits.met(['t']);
    bed.look();
    expect(bed.pushed).toEqual([]);
    bed.look();
    expect(bed.pushed).toEqual(['t']);
    bed.told[0]?.({ state: 'pending', remainingMs: 1 });
    for (let i = 0; i < 3; i++) bed.look();
    expect(bed.pushed).toEqual(['t']); // Nobody has met it since.
  });

  test('is asked after before it expires when somebody waits for it from one look to the next', async () => {
    const { bed } = await withPart();
    bed.wait('t');
    bed.look();
    expect(bed.pushed).toEqual([]);
    bed.look();
    expect(bed.pushed).toEqual(['t']);
  });

  test('is asked after although more than are asked after at a time have records where nobody answers (ST4)', async () => {
    const [, right] = neighbours();
    for (let i = 0; i < 100; i++) {
      await prepared(right, prepare(`lost-${i}`, 1, [put(`x${i}`, '1')], { expiresMs: 2_000 }));
    }
    await prepared(right, prepare('t', 1, [put('y', '1')], { expiresMs: 2_000 }));
    const bed = new IntentResolverBed(right);
    bed.timeMs = 2_001;
    for (let round = 0; round < 4; round++) {
      bed.look();
      for (const tell of bed.told.splice(0)) tell(undefined);
    }
    expect(bed.pushed).toContain('t');
    expect(bed.pushed.filter((txnId) => txnId === 'lost-0').length).toBeGreaterThan(1);
  });

  test('is left to the next leader when leadership was lost meanwhile', async () => {
    const { bed } = await withPart();
    bed.timeMs = 2_001;
    bed.look();
    bed.serving = false;
    bed.told[0]?.(COMMITTED);
    expect(bed.proposed).toEqual([]);
    bed.look();
    expect(bed.clock.nextTimerMs()).toBeUndefined();
  });
});

describe('a record', () => {
  test('that has expired is pushed in the range itself', async () => {
    const [left] = neighbours();
    await prepared(left, prepare('t', 0, [put('a', '1')], { expiresMs: 1_500 }));
    const bed = new IntentResolverBed(left);
    bed.look();
    expect(bed.proposed).toEqual([]);
    bed.timeMs = 1_501;
    bed.look();
    expect(bed.proposed.map(({ command }) => command)).toMatchObject([
      { type: 'txnDecide', txnId: 't', decision: { type: 'push' } },
    ]);
    expect(bed.pushed).toEqual([]);
  });

  test.each([
    { name: 'is dropped when all its parts are known to be resolved', failing: false, expect: ['txnForget'] },
    { name: 'is kept when one of them is not', failing: true, expect: [] },
  ])('that is committed $name', async ({ failing, expect: types }) => {
    const [left] = neighbours();
    await prepared(left, prepare('t', 0, [put('a', '1')], { expiresMs: 1_500 }));
    const span = { start: Buffer.from('\x03x'), end: Buffer.from('\x03y') };
    await left.ok(decide('t', { ...commitAt(7), others: [span] }));
    const bed = new IntentResolverBed(left);
    bed.timeMs = 1_501;
    bed.look();
    expect(bed.resolving.map(({ command }) => [command.part, command.span.start.toString()])).toEqual([
      [0, '\x03a'],
      [1, '\x03x'],
    ]);
    bed.resolving[0]?.done();
    expect(bed.proposed).toEqual([]);
    bed.resolving[1]?.done(failing ? new ServiceError('UNAVAILABLE', 'not now') : undefined);
    expect(bed.proposed.map(({ command }) => command.type)).toEqual(types);
    bed.look();
    expect(bed.resolving).toHaveLength(failing ? 4 : 2);
  });
});

test('there is no timer where there is no transaction', async () => {
  const [left] = neighbours();
  const bed = new IntentResolverBed(left);
  expect(bed.clock.nextTimerMs()).toBeUndefined();
});
