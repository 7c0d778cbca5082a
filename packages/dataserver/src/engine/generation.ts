import { type Bytes, type Clock, loopSection } from '@remora/base';
import { keyOf, type Name } from './latin1.ts';
import { nextTurn } from './merge.ts';
import { OrderedTable } from './ordered-table.ts';
import { ResidentChanges } from './resident-changes.ts';
import type { PersistentStore, StoreBatch } from './store.ts';

/**
 * The number of changes prepared for a checkpoint in one go, about half a millisecond's work: requests wait meanwhile.
 */
const CHANGES_PER_TURN_MAX = 250;

/** The changes made between two checkpoints (O1). A frozen generation is simply not changed any more. */
export class Generation {
  /** Keys outside the resident spaces, ordered, tombstones included. */
  readonly changes = new OrderedTable();
  /** Recorded by the table of resident rows. */
  readonly resident = new ResidentChanges();

  get keys(): number {
    return this.changes.keys + this.resident.keys;
  }

  get bytes(): number {
    return this.changes.bytes + this.resident.bytes;
  }

  get empty(): boolean {
    return this.keys === 0;
  }

  *allChanges(): Generator<readonly [Name, Bytes | undefined]> {
    for (const [name, cell] of this.changes.entries()) yield [name, cell.value];
    yield* this.resident.all();
  }
}

/** Writes a frozen generation in one batch. */
export async function writeGeneration(store: PersistentStore, generation: Generation, clock: Clock): Promise<void> {
  const batch = store.batch();
  const changes = generation.allChanges();
  while (loopSection('checkpoint', () => addSome(batch, changes))) await nextTurn(clock);
  await loopSection('checkpoint', () => batch.write());
}

/** Returns whether there may be more. */
function addSome(batch: StoreBatch, changes: Iterator<readonly [Name, Bytes | undefined]>): boolean {
  for (let added = 0; added < CHANGES_PER_TURN_MAX; added++) {
    const next = changes.next();
    if (next.done === true) return false;
    const [name, value] = next.value;
    if (value === undefined) batch.delete(keyOf(name));
    else batch.put(keyOf(name), value);
  }
  return true;
}
