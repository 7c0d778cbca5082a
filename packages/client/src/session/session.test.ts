import { SeededRandom, silentLogger } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import { TTL_NEVER_MS, validityMs } from '@remora/lock';
import type { Command } from '@remora/protocol';
import { expect, test } from 'vitest';
import type { Requester } from '../transport/requester.ts';
import { LeaseEndings } from './lease-endings.ts';
import { Session } from './session.ts';

const TTL_MS = 3_000;

/** A session, and its heartbeats that were sent and not answered. */
async function opened(grantedMs = TTL_MS, revocable?: Promise<void>) {
  const clock = new ManualClock();
  const beats: ((ttlMs?: number) => void)[] = [];
  const commands: string[] = [];
  const requester: Pick<Requester, 'ports' | 'command' | 'attempt' | 'gateways'> = {
    gateways: { count: 1, flush() {} } as unknown as Requester['gateways'],
    ports: { clock, random: new SeededRandom(1), logger: silentLogger } as unknown as Requester['ports'],
    command: (async ({ type }: Command) => {
      commands.push(type);
      if (type === 'leaseRevoke') await revocable;
      return { result: { type: 'leaseGrant', id: 5n, incarnation: 1, ttlMs: grantedMs } };
    }) as never,
    attempt: ((...[, , , done]: Parameters<Requester['attempt']>) => {
      beats.push((ttlMs = TTL_MS) => done(undefined, { result: { type: 'leaseKeepAlive', ttlMs } } as never));
      return { cancel() {} };
    }) as never,
  };
  const endings = new LeaseEndings(requester as Requester, undefined);
  const deps = { requester: requester as Requester, journal: undefined, endings };
  const session = await Session.open(deps, { ttlMs: TTL_MS, timeoutMs: 1_000, attributes: {} });
  return { clock, beats, commands, session };
}

test('an acknowledgement counts from when its heartbeat was sent, however late it comes', async () => {
  const { clock, beats, session } = await opened();
  const openedMs = clock.monotonicMs();
  clock.advance(1_000);
  expect(beats).toHaveLength(1);
  clock.advance(900);
  beats[0]?.();
  expect(session.deadlineMs).toBe(openedMs + 1_000 + validityMs(TTL_MS));
  clock.advance(session.deadlineMs - clock.monotonicMs());
  expect(session.state).toBe('lost');
});

test('an acknowledgement counts for the TTL that it names, if that is shorter than the one that was agreed on (S4)', async () => {
  const { clock, beats, session } = await opened();
  const openedMs = clock.monotonicMs();
  clock.advance(1_000);
  beats[0]?.(2_000);
  expect(session.deadlineMs).toBe(openedMs + 1_000 + validityMs(2_000));
});

test('is closed in time, whatever its locks wait for before they can be released', async () => {
  const { clock, commands, session } = await opened();
  session.beforeClose(() => new Promise(() => {}));
  const closed = session.close(900);
  clock.advance(299);
  for (let turn = 0; turn < 10; turn++) await Promise.resolve();
  expect([session.state, commands]).toEqual(['active', ['leaseGrant']]);
  clock.advance(1);
  await closed;
  expect([session.state, commands, clock.pendingTimers]).toEqual(['closed', ['leaseGrant', 'leaseRevoke'], 0]);
});

test('a session that is closed takes no other one in: what was just being opened for it ends', async () => {
  const [parent, child] = [await opened(), await opened()];
  await parent.session.close(1_000);
  expect(() => parent.session.adopt(child.session)).toThrow(expect.objectContaining({ code: 'CANCELED' }));
  expect([child.session.state, child.commands]).toEqual(['closed', ['leaseGrant', 'leaseRevoke']]);
});

test('a session that was lost and is closed then ends those that it has adopted, and takes in no more', async () => {
  const [parent, child, late] = [await opened(), await opened(), await opened()];
  parent.session.adopt(child.session);
  parent.session.expired();
  expect(child.session.state).toBe('active');
  await parent.session.close(1_000);
  expect([child.session.state, child.commands]).toEqual(['closed', ['leaseGrant', 'leaseRevoke']]);
  expect(() => parent.session.adopt(late.session)).toThrow(expect.objectContaining({ code: 'SESSION_EXPIRED' }));
  expect(parent.commands).toEqual(['leaseGrant']);
});

test('with a session that is left to its TTL those are left that it has adopted: nobody renews them, or ends them', async () => {
  const [parent, ...children] = [await opened(), await opened(), await opened(TTL_NEVER_MS)];
  for (const { session } of children) parent.session.adopt(session);
  await parent.session.leave();
  for (const { session, clock, commands, beats } of children) {
    await session.end(1_000);
    clock.advance(TTL_MS);
    expect([session.state, commands, beats]).toEqual(['closed', ['leaseGrant'], []]);
  }
});

test('whoever closes a session waits for its end, also where what was released before has closed it', async () => {
  let revoked = (): void => {};
  const { session } = await opened(
    TTL_MS,
    new Promise((resolve) => {
      revoked = resolve;
    }),
  );
  const forget = session.beforeClose(async () => {
    forget();
    session.end(900).catch(() => {});
  });
  let isClosed = false;
  const closed = session.close(900).then(() => {
    isClosed = true;
  });
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
  expect([session.state, isClosed]).toEqual(['closed', false]);
  revoked();
  await closed;
});
