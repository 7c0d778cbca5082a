/**
 * Locks that readers share and that writers hold exclusively. Holders change from one kind to the other. Also permits
 * of semaphores.
 */
import { ServiceError } from '@remora/base';
import type { HeldLock } from 'remora';
import { trustedUntilNs } from './fences.ts';
import { type Client, inRounds, type MakeWorkers, namesFor } from './workload.ts';

/** Of each semaphore. */
export const CAPACITY = 3;
const USERS = 2;
const PERMITS_MAX = 2;
const WAIT_MS_MAX = 4_000;
const UPGRADE_MS_MAX = 500;
const HOLD_MS_MAX = 30;
const CONVERSIONS_MAX = 3;

interface Use {
  readonly client: Client;
  readonly r: number;
  readonly k: string;
  readonly c: string;
  readonly mode: HeldLock['mode'];
  readonly permits: number;
}

/** The lock of readers and writers, and the semaphore. */
export function kindLocksOf(r: number): readonly [lock: string, semaphore: string] {
  return [`kinds/${r}/rw`, `kinds/${r}/sem`];
}

export const kinds: MakeWorkers = (client) => {
  const owner = namesFor(client, 'k');
  return Array.from({ length: USERS }, () =>
    inRounds(client, async (r) => {
      const use = drawUse(client, r, owner());
      const held = await acquire(use);
      if (held !== undefined) await work(use, held);
    }),
  );
};

function drawUse(client: Client, r: number, c: string): Use {
  const { random } = client;
  const [lock, semaphore] = kindLocksOf(r);
  if (random.int(3) === 0) {
    return { client, r, c, k: semaphore, mode: 'permits', permits: 1 + random.int(PERMITS_MAX) };
  }
  return { client, r, c, k: lock, mode: random.int(3) === 0 ? 'exclusive' : 'shared', permits: 0 };
}

async function acquire(use: Use): Promise<HeldLock | undefined> {
  const { client, r, c, k, mode, permits } = use;
  const operation = client.journal.begin('kinds', r, { c, k, op: 'acquire', mode, permits });
  try {
    const held = await asked(use, client.random.int(WAIT_MS_MAX));
    operation.end('done', { a: holding(client, held) });
    return held;
  } catch (error) {
    const code = codeOf(error);
    operation.end(code === 'LOCK_TIMEOUT' || code === 'LOCK_BUSY' ? 'refused' : 'unknown', { code });
    return undefined;
  }
}

function asked({ client: { remora }, k, mode, permits }: Use, wait: number): Promise<HeldLock> {
  switch (mode) {
    case 'permits':
      return remora.semaphore(k, { permits: CAPACITY }).acquire({ permits, wait });
    case 'shared':
      return remora.rwLock(k).read({ wait });
    case 'exclusive':
      return remora.rwLock(k).write({ wait });
  }
}

async function work(use: Use, held: HeldLock): Promise<void> {
  const { client, r, c, k } = use;
  const { random } = client;
  for (let left = random.int(CONVERSIONS_MAX + 1); left > 0 && held.remainingMs > 0; left--) {
    await client.pause(random.int(HOLD_MS_MAX));
    if (held.mode !== 'permits') await convert(use, held);
  }
  await client.pause(random.int(HOLD_MS_MAX));
  const operation = client.journal.begin('kinds', r, { c, k, op: 'release', until: trustedUntilNs(client, held) });
  try {
    await held.release();
    operation.end('done');
  } catch (error) {
    operation.end('unknown', { code: codeOf(error) });
  }
}

async function convert({ client, r, c, k }: Use, held: HeldLock): Promise<void> {
  const operation = client.journal.begin('kinds', r, { c, k, op: 'convert' });
  try {
    if (held.mode === 'shared') await held.upgrade({ wait: client.random.int(UPGRADE_MS_MAX) });
    else await held.downgrade();
    operation.end('done', { a: holding(client, held) });
  } catch (error) {
    // Unless it is lost, it is held shared.
    operation.end('refused', { code: codeOf(error), a: holding(client, held) });
  }
}

function holding(client: Client, held: HeldLock): object {
  return { mode: held.mode, version: held.version, until: trustedUntilNs(client, held) };
}

function codeOf(error: unknown): string {
  if (!(error instanceof ServiceError)) throw error;
  return error.code;
}
