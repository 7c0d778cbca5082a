import type { Logger } from '@remora/base';
import { ChainedStore } from './chained-store.ts';
import { CheckedStore } from './checked-store.ts';
import { raiseFormat } from './format.ts';
import type { PersistentStore } from './store.ts';

/**
 * Opens the store in which an engine keeps its rows, over a disk's store: in the current format, with checksums in its
 * rows and with marks of its batches. `place` names the location of the store in messages.
 *
 * @throws {StoreOpenError} if the store has a newer format, or belongs to another program.
 * @throws {StoreDamagedError} if the store does not hold what was written to it.
 */
export async function openStore(inner: PersistentStore, place: string, logger: Logger): Promise<PersistentStore> {
  await raiseFormat(inner, place, logger);
  return ChainedStore.open(new CheckedStore(inner, place), place);
}
