import { ManualClock, SeededRandom, silentLogger } from '@remora/base';
import { validityMs } from '@remora/lock';
import { expect, test } from 'vitest';
import type { Requester } from './requester.ts';
import { Session } from './session.ts';

const TTL_MS = 3_000;

/** A session, and its heartbeats that were sent and not answered. */
async function opened() {
  const clock = new ManualClock();
  const beats: ((ttlMs?: number) => void)[] = [];
  const requester: Pick<Requester, 'ports' | 'command' | 'attempt'> = {
    ports: { clock, random: new SeededRandom(1), logger: silentLogger } as unknown as Requester['ports'],
    command: (async () => ({ result: { type: 'leaseGrant', id: 5n, incarnation: 1, ttlMs: TTL_MS } })) as never,
    attempt: ((...[, , , done]: Parameters<Requester['attempt']>) => {
      beats.push((ttlMs = TTL_MS) => done(undefined, { result: { type: 'leaseKeepAlive', ttlMs } } as never));
      return { cancel() {} };
    }) as never,
  };
  const session = await Session.open(requester as Requester, { ttlMs: TTL_MS, timeoutMs: 1_000, attributes: {} });
  return { clock, beats, session };
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
