/** Writes under a lock into the cluster itself, which refuses writes whose grant does not hold the lock. */
import { ServiceError } from '@remora/base';
import type { HeldLock } from 'remora';
import { NS_PER_MS } from '../journal/lines.ts';
import type { Client } from './workload.ts';

export interface FencedWrite {
  readonly client: Client;
  readonly r: number;
  /** The lock. */
  readonly k: string;
  /** The write comes after the release, like that of a client that was frozen while it held the lock. */
  readonly late: boolean;
}

/** The key that a lock protects. */
export function fencedKey(lock: string): string {
  return lock.replace('lock/', 'fence/');
}

/** Writes the version of the grant. */
export async function writeFenced({ client, r, k, late }: FencedWrite, held: HeldLock): Promise<void> {
  const { version } = held;
  const until = (): number => (late ? 0 : trustedUntilNs(client, held));
  const operation = client.journal.begin('fences', r, { op: 'put', k, v: version, late });
  try {
    const fence = late ? { name: k, version } : held;
    const { revision } = await client.remora.kv.put(fencedKey(k), String(version), { fence });
    operation.end('done', { a: { revision, until: until() } });
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    const { code } = error;
    operation.end(error.mayBeApplied ? 'unknown' : 'refused', { code, a: { until: until() } });
  }
}

/**
 * Until when, on the clock of the run, the holder is certain to hold the lock. 0: it is not. If the process stands
 * still meanwhile, the result is too early, never too late.
 */
export function trustedUntilNs({ journal }: Client, held: HeldLock): number {
  const { nowNs } = journal;
  const { remainingMs } = held;
  return remainingMs > 0 ? Math.floor(nowNs + remainingMs * NS_PER_MS) : 0;
}
