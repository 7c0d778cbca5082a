import { EMPTY_BYTES, utf8 } from '@remora/base';
import { grantNews, type LockCommand, type LockId, type LockResult, type SessionRef } from '@remora/lock';
import { beforeEach, describe, expect, test } from 'vitest';
import { StateBed } from '../../../test/support/state-bed.ts';
import { lockReader } from '../../state/locks/engine-lock-view.ts';
import { GrantWatches } from './grant-watches.ts';

const LOCK: LockId = { namespace: 'n', name: utf8('l') };
const OTHER: LockId = { namespace: 'n', name: utf8('l2') };

type Acquire = Extract<LockCommand, { type: 'acquire' }>;
const SHARED: Partial<Acquire> = { as: { type: 'shared' } };
const permitOf = (capacity: number): Partial<Acquire> => ({ as: { type: 'permits', permits: 1, capacity } });

/** A leader of a range whose holders want to know of their grants. */
class WatchesBed extends StateBed {
  looks = 0;
  readonly told: string[] = [];
  readonly watches = new GrantWatches((lock, question) => {
    this.looks++;
    return grantNews({ ...lockReader(this.engine), timeMs: this.timeMs }, lock, question);
  });
  readonly #sessions = new Map<string, SessionRef>();

  async open(): Promise<void> {
    this.onGrantEnded = (lock, version) => this.watches.ended(lock, version);
    for (const [i, name] of ['s1', 's2'].entries()) {
      const id = BigInt(i + 1);
      const result = await this.ok({ type: 'leaseGrant', id, ttlMs: 5_000, attributes: {} });
      if (result.type === 'leaseGrant') this.#sessions.set(name, { lease: id, incarnation: result.incarnation });
    }
  }

  owner(token: string, session = 's1') {
    return { session: this.#sessions.get(session) ?? expect.fail(), token };
  }

  acquire(token: string, more: Partial<Acquire> = {}): LockCommand {
    const times = { waitUntilMs: 0, deadlineMs: 0, depthMax: 1, attempt: 1 };
    return { type: 'acquire', lock: LOCK, owner: this.owner(token), data: EMPTY_BYTES, wait: true, ...times, ...more };
  }

  release(token: string): LockCommand {
    return { type: 'release', lock: LOCK, owner: this.owner(token), all: true, attempt: 1, deadlineMs: 0 };
  }

  /** One entry of several commands. */
  async apply(...commands: readonly LockCommand[]): Promise<LockResult[]> {
    const outcomes = await this.batch(commands.map((command) => ({ command: { type: 'lock', command } })));
    this.settle();
    return outcomes.map((outcome) => {
      if (!outcome.ok || outcome.result.type !== 'lock') throw new Error('a command about a lock answers as one');
      return outcome.result.result;
    });
  }

  /** What a replica does with an entry that it has applied. */
  settle(): void {
    for (const notice of this.notices.splice(0)) this.watches.notify(notice);
    this.watches.flush();
  }

  /** Acquires a lock, and watches the grant; gives its version. */
  async hold(token: string, more: Partial<Acquire> = {}, known: number | undefined = undefined): Promise<number> {
    const [result] = await this.apply(this.acquire(token, more));
    if (result?.type !== 'granted') throw new Error('it is granted at once');
    const { version } = result;
    this.watches.add(more.lock ?? LOCK, { version, known }, (news) =>
      this.told.push(`${token} ${news === 'ended' ? news : `asked by ${news.by}`}`),
    );
    return version;
  }
}

describe('who watches a grant', () => {
  let bed: WatchesBed;
  beforeEach(async () => {
    bed = new WatchesBed();
    await bed.open();
  });

  const ends: readonly { readonly name: string; readonly by: () => Promise<unknown> }[] = [
    { name: 'it is taken away', by: () => bed.apply({ type: 'forceRelease', lock: LOCK, by: '', reason: '' }) },
    { name: 'it goes on to the next one', by: () => bed.apply(bed.acquire('b'), bed.release('a')) },
    { name: 'nobody has the lock behind it', by: () => bed.apply(bed.release('a')) },
    {
      name: 'the lock is had in another way',
      by: () => bed.apply({ type: 'downgrade', lock: LOCK, owner: bed.owner('a'), attempt: 1 }),
    },
    { name: 'its session ends', by: () => bed.ok({ type: 'leaseRevoke', id: 1n, incarnation: 0 }) },
  ];

  test.each(ends)('is told once that it has ended when $name', async ({ by }) => {
    await bed.hold('a');
    await by();
    bed.settle();
    bed.settle();
    expect(bed.told).toEqual(['a ended']);
  });

  test('is told that it has ended when it is delayed, and is not looked at when that is over', async () => {
    const version = await bed.hold('a', { delayMs: 1_000 });
    await bed.ok({ type: 'leaseRevoke', id: 1n, incarnation: 0 });
    bed.settle();
    expect([bed.told, bed.looks]).toEqual([['a ended'], 1]);
    await bed.apply({ type: 'endDelay', lock: LOCK, owner: bed.owner('a'), version });
    expect(bed.looks).toBe(1);
  });

  test('is not looked at for what happens to others: to another lock, to waiters, to those who share it', async () => {
    await bed.hold('a', SHARED);
    await bed.apply(bed.acquire('b', SHARED), bed.acquire('c'), bed.acquire('x', { lock: OTHER }));
    await bed.apply(bed.release('b'), { type: 'forceRelease', lock: OTHER, by: '', reason: '' });
    await bed.apply({ type: 'cancel', lock: LOCK, owner: bed.owner('c'), deadlineMs: 0 });
    expect([bed.told, bed.looks]).toEqual([[], 0]);
  });

  test('is the only one who is looked at when one of many holders hands over, and once for an entry (GW1)', async () => {
    for (let i = 0; i < 50; i++) await bed.hold(`t${i}`, permitOf(50));
    for (let i = 0; i < 5; i++) await bed.apply(bed.acquire(`w${i}`, permitOf(50)));
    await bed.apply(bed.release('t7'));
    await bed.apply(bed.release('t8'), bed.release('t9'));
    expect([bed.told, bed.looks]).toEqual([['t7 ended', 't8 ended', 't9 ended'], 3]);
    await bed.apply({ type: 'forceRelease', lock: LOCK, by: '', reason: '' });
    expect([bed.told.length, bed.looks]).toEqual([50, 50]);
  });

  test('is told nothing while another has the same version, of those who were granted it together', async () => {
    await bed.apply(bed.acquire('a'), bed.acquire('b', SHARED), bed.acquire('c', SHARED));
    await bed.apply(bed.release('a'));
    const [again] = await bed.apply(bed.acquire('b', SHARED));
    if (again?.type !== 'granted') throw new Error('it holds the lock');
    bed.watches.add(LOCK, { version: again.version, known: undefined }, (news) => bed.told.push(`${news}`));
    await bed.apply(bed.release('b'));
    expect([bed.told, bed.looks]).toEqual([[], 1]);
    await bed.apply(bed.release('c'));
    expect([bed.told, bed.looks]).toEqual([['ended'], 2]);
  });

  test('is looked at as one with all who were let in together, each time one of them leaves (GW1)', async () => {
    const tokens = Array.from({ length: 50 }, (_, i) => `t${i}`);
    await bed.apply(bed.acquire('a'), ...tokens.map((token) => bed.acquire(token, SHARED)));
    await bed.apply(bed.release('a'));
    for (const token of tokens) await bed.hold(token, SHARED);
    for (const token of tokens) await bed.apply(bed.release(token));
    expect([bed.told, bed.looks]).toEqual([tokens.map((token) => `${token} ended`), 50]);
  });

  test('is not told any more when the question was taken back, while others of the lock are', async () => {
    const version = await bed.hold('a');
    const remove = bed.watches.add(LOCK, { version, known: undefined }, () => bed.told.push('taken back'));
    remove();
    await bed.apply(bed.release('a'));
    expect(bed.told).toEqual(['a ended']);
  });

  test('is told that it is asked to let go, if it wants to know and does not yet', async () => {
    await bed.hold('a', SHARED, 0);
    await bed.hold('b', SHARED, Number.MAX_SAFE_INTEGER);
    await bed.hold('c', SHARED);
    await bed.apply({ type: 'revoke', lock: LOCK, by: 'ops', reason: '', forMs: 50 });
    expect(bed.told).toEqual(['a asked by ops']);
  });
});
