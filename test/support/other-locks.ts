import type { OtherLocks } from 'remora/migrate';

export const TTL_MS = 30_000;
/** As whom a lock is acquired in another system. */
export const as = (owner: string) => ({ ttlMs: TTL_MS, owner });

/** What the locks of every other system do. */
export async function contract(locks: OtherLocks, name: string): Promise<unknown> {
  const first = await locks.tryAcquire(name, as('first'));
  const second = await locks.tryAcquire(name, as('second'));
  const renewed = await first?.renew();
  await first?.release();
  const third = await locks.tryAcquire(name, as('third'));
  const late = [await first?.renew(), await first?.release()];
  const stillHeld = await third?.renew();
  await third?.release();
  return { first: first !== undefined, second, renewed, third: third !== undefined, late, stillHeld };
}
export const KEPT = {
  ...{ first: true, second: undefined, renewed: true, third: true, late: [false, undefined], stillHeld: true },
};
