/**
 * A process that holds locks in many sessions, and waits for more, until it is ended: `holders-main.js <HoldersSpec>`.
 * It says `ready`; asked for `ages`, it says how long ago each session was certainly alive at the server.
 */
import { type ClientSession, connect, type HeldLock } from 'remora';
import { type HoldersSpec, lockName, WAITED_FOR } from './holders.ts';

const AT_ONCE = 256;
/**
 * What the SDK makes of a TTL: how long behind an acknowledged heartbeat a lock is certain (docs/understand/locks.md).
 */
const CERTAIN_PART = 0.9;
const CERTAIN_LESS_MS = 50;

async function main(spec: HoldersSpec): Promise<void> {
  const { endpoints, ttlMs, waiters } = spec;
  const clients = await Promise.all(endpoints.map((endpoint) => connect({ endpoints: endpoint, sessionTtl: ttlMs })));
  const pick = (n: number) => clients[n % clients.length] ?? fail();
  const sessions = await inParallel(spec.sessions, (n) => pick(n).session({ ttl: ttlMs }));
  const held = await inParallel(spec.sessions * spec.locks, (n) => acquire(sessions, n));
  if (waiters > 0) await pick(0).lock(WAITED_FOR).acquire();
  for (let i = 0; i < waiters; i++) void pick(i).lock(WAITED_FOR).acquire();
  process.on('message', () => process.send?.({ type: 'ages', agesMs: agesOf(spec, held) }));
  process.send?.({ type: 'ready' });
}

function acquire(sessions: readonly ClientSession[], n: number): Promise<HeldLock> {
  const session = sessions[n % sessions.length] ?? fail();
  return session.lock(lockName(n % sessions.length, Math.floor(n / sessions.length))).acquire();
}

/** Of the first lock of each session. */
function agesOf({ ttlMs, sessions }: HoldersSpec, held: readonly HeldLock[]): readonly number[] {
  const certainMs = CERTAIN_PART * ttlMs - CERTAIN_LESS_MS;
  return held.slice(0, sessions).map(({ remainingMs }) => certainMs - remainingMs);
}

async function inParallel<T>(count: number, make: (n: number) => Promise<T>): Promise<readonly T[]> {
  const made: T[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) {
      const n = next++;
      made[n] = await make(n);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return made;
}

function fail(): never {
  throw new Error('no clients');
}

process.on('disconnect', () => process.exit());
await main(JSON.parse(process.argv[2] ?? '{}') as HoldersSpec);
