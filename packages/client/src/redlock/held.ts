/**
 * What a `Lock` of redlock holds in the cluster.
 *
 * RK1. Each resource is the lock of that name in the default namespace, held exclusively under a lease of its own. So
 *      programs that use `remora.lock(name)` and programs that use redlock exclude one another.
 * RK2. The lease is not renewed: it ends by itself. Its TTL is a little longer than the duration, so that the lock is
 *      certain to be held for the duration although no clock is exact.
 * RK3. The value of a lock names its leases. Any process that has the value can release and extend the lock.
 */
import { ServiceError } from '@remora/base';
import { validityMs } from '@remora/lock';
import type { RemoraClient } from '../client.ts';
import type { HeldLock } from '../lock/held-lock.ts';
import { HeldLocks } from '../lock/held-locks.ts';
import { ResourceLockedError } from './redlock-errors.ts';

/** One lock, or several. Undefined: there are no resources. */
export type Held = HeldLock | HeldLocks | undefined;

/** A lease cannot be shorter. */
const TTL_MS_MIN = 100;
/** Of the time that has to be covered: enough for `validityMs`, however short the lease. */
const TTL_PER_MS = 1.25;
/** Clocks that count whole ms may hide as much. */
const ROUNDING_MS = 2;

/** RK2. The shortest TTL that is certain to cover the duration. */
export function ttlMsFor(durationMs: number): number {
  const coveredMs = durationMs + ROUNDING_MS;
  let [tooShort, enough] = [coveredMs, Math.ceil(coveredMs * TTL_PER_MS)];
  while (enough - tooShort > 1) {
    const middle = Math.floor((tooShort + enough) / 2);
    if (validityMs(middle) >= coveredMs) enough = middle;
    else tooShort = middle;
  }
  return Math.max(TTL_MS_MIN, enough);
}

export function locksOf(held: Held): readonly HeldLock[] {
  if (held === undefined) return [];
  return held instanceof HeldLocks ? held.locks : [held];
}

const LEASE_DIGITS = 16;
const SEPARATOR = '.';

/** RK3. */
export function valueFor(held: Held): string {
  return locksOf(held)
    .map(({ handle }) => handle.lease.padStart(LEASE_DIGITS, '0'))
    .join(SEPARATOR);
}

/** A lock that is known by its value alone. */
export interface NamedLock {
  readonly resources: readonly string[];
  readonly value: string;
}

/** RK3. Ends the leases. @throws ResourceLockedError when not all of the resources were held. */
export async function releaseByValue(client: RemoraClient, lock: NamedLock): Promise<void> {
  const leases = await heldLeases(client, lock);
  await Promise.all([...new Set(leases)].map((lease) => client.sessions.close(lease)));
  requireAll(lock, leases, 'released');
}

/** RK3. Renews the leases for the TTL that they have. Returns how long they are certain to live, in ms. */
export async function extendByValue(client: RemoraClient, lock: NamedLock): Promise<number> {
  const leases = await heldLeases(client, lock);
  requireAll(lock, leases, 'extended');
  const ttlsMs = await Promise.all([...new Set(leases)].map((lease) => client.lease.keepAlive(lease)));
  return validityMs(Math.min(...ttlsMs));
}

/** The lease of each resource that is held by it. */
async function heldLeases(client: RemoraClient, { resources, value }: NamedLock): Promise<readonly bigint[]> {
  const leases = value.split(SEPARATOR);
  const found = resources.map(async (resource, at) => {
    const lease = leases[at];
    if (lease === undefined || !/^[0-9a-f]{16}$/.test(lease)) return undefined;
    const session = await client.sessions.show(lease);
    const isHeld = session?.locks.some(({ lock, version }) => version > 0 && nameOf(lock.name) === resource);
    return isHeld ? session?.id : undefined;
  });
  return (await Promise.all(found)).filter((lease) => lease !== undefined);
}

function nameOf(name: Uint8Array): string {
  return Buffer.from(name).toString();
}

function requireAll({ resources }: NamedLock, leases: readonly bigint[], what: string): void {
  if (leases.length === resources.length) return;
  throw new ResourceLockedError(
    `${leases.length} of ${resources.length} resources could be ${what}: this lock no longer holds the others`,
  );
}

/** Releases what this process acquired. @throws ServiceError LOCK_NOT_HELD when somebody had taken it away. */
export async function releaseHeld(held: HeldLock | HeldLocks): Promise<void> {
  const current = await held.check();
  // Also what is lost in part: the rest is not to stay until its lease ends.
  await held.release();
  if (!current) throw new ServiceError('LOCK_NOT_HELD', 'the lock was no longer held');
}

/** Holds it for this TTL from now on. @throws ServiceError LOCK_NOT_HELD when somebody had taken it away. */
export async function extendHeld(held: HeldLock | HeldLocks, ttlMs: number): Promise<number> {
  const locks = new Set(locksOf(held));
  await Promise.all([...locks].map((lock) => lock.extend(ttlMs)));
  // A lease outlives a lock that was taken away by force.
  if (!(await held.check())) throw new ServiceError('LOCK_NOT_HELD', 'the lock was taken away');
  return held.remainingMs;
}
