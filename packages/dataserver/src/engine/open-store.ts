import type { Logger } from '@remora/base';
import { ChainedStore } from './chained-store.ts';
import { CheckedStore } from './checked-store.ts';
import { raiseFormat } from './format.ts';
import type { PersistentStore } from './store.ts';

/**
 * What an engine keeps its rows in, over a disk's store: of today's format, with checksums in its rows and with marks
 * of its batches. `place` is where the store lies, for messages.
 *
 * @throws {StoreOpenError} when it is of a newer format, or another program's.
 * @throws {StoreDamagedError} when it does not hold what was written to it.
 */
export async function openStore(inner: PersistentStore, place: string, logger: Logger): Promise<PersistentStore> {
  await raiseFormat(inner, place, logger);
  return ChainedStore.open(new CheckedStore(inner, place), place);
}
