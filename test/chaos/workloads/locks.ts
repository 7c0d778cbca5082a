/**
 * Contended locks. Each lock protects a number outside of the cluster and a key of the cluster. The holder reads the
 * number, waits, and writes the number plus one, each time with its fencing version. It also writes the key under the
 * lock.
 */
import { ServiceError } from '@remora/base';
import type { HeldLock } from 'remora';
import { trustedUntilNs, writeFenced } from './fences.ts';
import { type Client, inRounds, type MakeWorkers, namesFor } from './workload.ts';

/** One holder in this many continues to write after it has released the lock. */
const WRITES_LATE = 3;
const LATE_MS_MAX = 300;
const WAIT_MS_MAX = 4_000;

export interface LockUsers {
  readonly locks: number;
  /** Per client. */
  readonly users: number;
  readonly holdMsMax: number;
}

/** As one kind of load among others. */
export const locks = lockUsers({ locks: 2, users: 3, holdMsMax: 20 });

export function lockUsers({ locks, users, holdMsMax }: LockUsers): MakeWorkers {
  return (client) => {
    const owner = namesFor(client, 'o');
    return Array.from({ length: users }, () =>
      inRounds(client, async (r) => {
        // Every acquire has a separate owner, because each owner has a separate token.
        const use: Use = { client, r, k: `lock/${r}/${client.random.int(locks)}`, c: owner() };
        const held = await acquire(use);
        if (held !== undefined) await work(use, held, holdMsMax);
      }),
    );
  };
}

interface Use {
  readonly client: Client;
  readonly r: number;
  readonly k: string;
  readonly c: string;
}

async function acquire({ client, r, k, c }: Use): Promise<HeldLock | undefined> {
  const { random, remora, journal } = client;
  const wait = random.int(4) === 0 ? 0 : 1 + random.int(WAIT_MS_MAX);
  const operation = journal.begin('locks', r, { c, k, op: 'acquire', wait });
  try {
    const held = wait === 0 ? await remora.lock(k).tryAcquire() : await remora.lock(k).acquire({ wait });
    if (held === undefined) operation.end('done', { a: { ok: false } });
    else operation.end('done', { a: { ok: true, out: held.version, until: trustedUntilNs(client, held) } });
    return held;
  } catch (error) {
    const code = codeOf(error);
    // "Not in time" is an answer. But the lock may have been granted for a moment, and released.
    operation.end(code === 'LOCK_TIMEOUT' ? 'refused' : 'unknown', { code });
    return undefined;
  }
}

/** Holds the lock for a while, uses it, and releases it. */
async function work(use: Use, held: HeldLock, holdMsMax: number): Promise<void> {
  const { client, k } = use;
  const { version } = held;
  const value = await client.resource.read(k, version);
  await writeFenced({ ...use, late: false }, held);
  await client.pause(client.random.int(holdMsMax));
  await check(use, held);
  if (held.remainingMs > 0 && value !== undefined) await client.resource.write(k, version, value + 1);
  await release(use, held);
  if (client.random.int(WRITES_LATE) > 0) return;
  await client.pause(client.random.int(LATE_MS_MAX));
  await writeFenced({ ...use, late: true }, held);
}

/** Asks the cluster whether the lock is held, and records until when the holder itself considers it certain. */
async function check({ client, r, k, c }: Use, held: HeldLock): Promise<void> {
  const operation = client.journal.begin('locks', r, { c, k, op: 'check', v: held.version });
  try {
    const [current = false] = await client.remora.locks.check([{ name: k, version: held.version }]);
    operation.end('done', { a: { ok: true, out: current, until: trustedUntilNs(client, held) } });
  } catch (error) {
    operation.end('refused', { code: codeOf(error) }); // A check changes nothing.
  }
}

async function release({ client, r, k, c }: Use, held: HeldLock): Promise<void> {
  // From here on the holder no longer relies on it.
  const until = trustedUntilNs(client, held);
  const operation = client.journal.begin('locks', r, { c, k, op: 'release', v: held.version, until });
  try {
    await held.release();
    if (until > 0) operation.end('done', { a: { ok: true } });
    else operation.end('unknown', { code: 'LOST' }); // The end of the session frees it.
  } catch (error) {
    const code = codeOf(error);
    if (code === 'LOCK_NOT_HELD') operation.end('done', { code, a: { ok: false } });
    else operation.end('unknown', { code });
  }
}

function codeOf(error: unknown): string {
  if (!(error instanceof ServiceError)) throw error;
  return error.code;
}
