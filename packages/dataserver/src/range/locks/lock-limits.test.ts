import { EMPTY_BYTES } from '@remora/base';
import type { Command } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { StateBed } from '../../../test/support/state-bed.ts';
import { LOCK_LIMITS, LockLimits } from './lock-limits.ts';

const TERM = 3;

interface Session {
  readonly lease: bigint;
  readonly incarnation: number;
}

/** A range whose leader lets in what its limits allow. */
class LimitsBed extends StateBed {
  readonly limits: LockLimits;

  constructor(options: Partial<typeof LOCK_LIMITS>) {
    super();
    this.limits = new LockLimits({ ...LOCK_LIMITS, ...options }, this.state, this.engine);
  }

  /** 'ok', or what it is told. */
  async ask(command: Command, term = TERM): Promise<string> {
    const refusal = this.limits.refusal(command, term);
    if (refusal !== undefined) return refusal.message;
    await this.ok(command);
    return 'ok';
  }

  async session(lease: bigint): Promise<Session> {
    const result = await this.ok({ type: 'leaseGrant', id: lease, ttlMs: 5_000, attributes: {} });
    if (result.type !== 'leaseGrant') throw new Error('a grant answers as one');
    return { lease, incarnation: result.incarnation };
  }

  acquire(session: Session, name: string, { wait = true, attempt = 1 } = {}): Promise<string> {
    return this.ask(acquire(session, name, { wait, attempt }));
  }
}

function acquire(session: Session, name: string, more: { wait: boolean; attempt: number }): Command {
  const lock = { namespace: 'n', name: Buffer.from(name) };
  const times = { waitUntilMs: 0, deadlineMs: 0, depthMax: 5 };
  const owner = { session, token: 't' };
  return { type: 'lock', command: { type: 'acquire', lock, owner, data: EMPTY_BYTES, ...times, ...more } };
}

describe('limits of a range', () => {
  test('are for sessions, and one that ends makes room', async () => {
    const bed = new LimitsBed({ sessionsMax: 2 });
    const grant = (id: bigint) => bed.ask({ type: 'leaseGrant', id, ttlMs: 5_000, attributes: {} });
    expect([await grant(1n), await grant(2n)]).toEqual(['ok', 'ok']);
    expect(await grant(3n)).toMatch(/2 sessions.*--sessions-max/);
    await bed.ok({ type: 'leaseRevoke', id: 1n, incarnation: 0 });
    expect(await grant(3n)).toBe('ok');
  });

  test('are for the locks of a session, held or waited for, and not for those that it has already', async () => {
    const bed = new LimitsBed({ sessionLocksMax: 2 });
    const [mine, other] = [await bed.session(1n), await bed.session(2n)];
    expect(await bed.acquire(other, 'b')).toBe('ok');
    expect([await bed.acquire(mine, 'a'), await bed.acquire(mine, 'b')]).toEqual(['ok', 'ok']);
    expect(await bed.acquire(mine, 'c')).toMatch(/2 locks.*--session-locks-max/);
    expect(await bed.acquire(mine, 'b')).toBe('ok'); // It asks again.
    expect(await bed.acquire(mine, 'a', { wait: true, attempt: 2 })).toBe('ok'); // It enters again.
    expect(await bed.acquire(other, 'c')).toBe('ok');
    const lock = { namespace: 'n', name: Buffer.from('a') };
    const owner = { session: mine, token: 't' };
    await bed.ok({ type: 'lock', command: { type: 'release', lock, owner, all: true, deadlineMs: 0 } });
    expect(await bed.acquire(mine, 'c')).toBe('ok');
  });

  test('are kept to a tenth by a count now and then, which a new leader begins with', async () => {
    const bed = new LimitsBed({ sessionLocksMax: 20 });
    const session = await bed.session(1n);
    const all = async (from: number) => {
      for (let i = from; ; i++)
        if ((await bed.acquire(session, `l${i}`, { wait: false, attempt: 1 })) !== 'ok') return i;
    };
    const first = await all(0);
    expect(first).toBeGreaterThanOrEqual(20);
    expect(first).toBeLessThanOrEqual(22);
    expect(await bed.ask(acquire(session, 'more', { wait: false, attempt: 1 }), TERM + 1)).toMatch(/20 locks/);
  });

  test('are not counted for each refusal of a session that has many', async () => {
    const bed = new LimitsBed({ sessionLocksMax: 2_000 });
    const session = await bed.session(1n);
    for (let i = 0; i < 2_200; i++) if ((await bed.acquire(session, `l${i}`, { wait: false })) !== 'ok') break;
    const more = () => bed.acquire(session, 'more', { wait: false });
    const locks = bed.state.leaseOwnership.locksOf(1n, bed.state.bounds.routed, 10_000);
    for (const lock of locks.slice(0, 1_000)) {
      const owner = { session, token: 't' };
      await bed.ok({ type: 'lock', command: { type: 'release', lock, owner, all: true, deadlineMs: 0 } });
    }
    expect([await more(), await more(), await more()].map((answer) => answer === 'ok')).toEqual([false, false, true]);
  });

  test('are for the data of a lock, and not for one who has it and asks again', async () => {
    const bed = new LimitsBed({ dataBytesMax: 3 });
    const session = await bed.session(1n);
    const about = { lock: { namespace: 'n', name: Buffer.from('l') }, owner: { session, token: 't' } };
    const times = { wait: true, waitUntilMs: 0, deadlineMs: 0, depthMax: 1, attempt: 1 };
    const acquireWith = (data: string): Command => {
      return { type: 'lock', command: { type: 'acquire', ...about, data: Buffer.from(data), ...times } };
    };
    const setData = (data: string): Command => {
      const version = bed.state.revision;
      return { type: 'lock', command: { type: 'setData', ...about, version, data: Buffer.from(data) } };
    };
    const refusal = { limit: 'data', code: 'INVALID_ARGUMENT', message: expect.stringMatching(/3 bytes.*--lock-data/) };
    expect(bed.limits.refusal(acquireWith('abcd'), TERM)).toEqual(refusal);
    expect([await bed.ask(acquireWith('abc')), await bed.ask(acquireWith('abcd'))]).toEqual(['ok', 'ok']);
    expect(bed.limits.refusal(setData('abcd'), TERM)).toEqual(refusal);
    expect(await bed.ask(setData('abc'))).toBe('ok');
  });

  test('are for those who wait for one lock, and not for those who wait already or do not', async () => {
    const bed = new LimitsBed({ waitersMax: 1 });
    const [a, b, c] = [await bed.session(1n), await bed.session(2n), await bed.session(3n)];
    expect([await bed.acquire(a, 'l'), await bed.acquire(b, 'l')]).toEqual(['ok', 'ok']);
    expect(await bed.acquire(c, 'l')).toMatch(/1 wait.*--lock-waiters-max/);
    expect(await bed.acquire(b, 'l')).toBe('ok');
    expect(await bed.acquire(c, 'l', { wait: false, attempt: 1 })).toBe('ok');
  });
});
