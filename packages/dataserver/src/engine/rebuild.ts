/**
 * Replaces all rows of some spans, in steps of bounded size. After a crash at any moment, the rebuild is repeated from
 * the start (design §6 ▸ durable marker).
 *
 * RB1. The marker is durable before any old row is deleted from disk, and is deleted in one synced batch with the last
 *      of the new rows. After a crash, a node that finds the marker calls `rebuild` again with the same rows.
 * RB2. A rebuild begins between two checkpoints. In the same step, every change in the spans that waits in memory for a
 *      checkpoint is forgotten: from then on only the rebuild writes there (O8 of the engine).
 * RB3. From the beginning to the last batch the spans read as empty, also in views taken meanwhile; the rows become
 *      visible in the step in which `replaced` is called.
 * RB4. Every batch is synced: LevelDB may lose the unsynced end of an older file of its log and keep a newer one (traps
 *      25), which would leave a hole behind the last batch.
 * RB5. Memory and time of a step are bounded, whatever the spans hold or held.
 */
import { assert, type Clock, copyBytes, type Rebuild, type Row, type Span } from '@remora/base';
import { anyRangeHolds, type Name, type NameRange, nameOf, rangeOf } from './latin1.ts';
import { nextTurn, storeRange } from './merge.ts';
import type { ResidentTable } from './resident-table.ts';
import type { PersistentStore } from './store.ts';

const ROWS_PER_BATCH_MAX = 2_000;
const BYTES_PER_BATCH_MAX = 1024 * 1024;

/** What a rebuild needs of its engine. */
export interface RebuildHost {
  readonly store: PersistentStore;
  readonly clock: Clock;
  readonly resident: ResidentTable;
  isResident(name: Name): boolean;
  put(row: Row): void;
  /** Runs `work` when no checkpoint is in progress, and before a checkpoint that waits. */
  betweenCheckpoints(work: () => Promise<void>): Promise<void>;
  /**
   * From now on the ranges read as empty and take no change; changes there that wait for a checkpoint are forgotten.
   */
  hide(ranges: readonly NameRange[]): void;
  show(ranges: readonly NameRange[]): void;
  /** Throws once the engine has failed or is being closed. */
  checkUsable(): void;
}

export async function rebuildSpans(host: RebuildHost, plan: Rebuild): Promise<void> {
  const { store, resident } = host;
  const ranges = plan.spans.map(rangeOf);
  const marker = nameOf(plan.marker.key);
  assert(host.isResident(marker) && !anyRangeHolds(ranges, marker), 'a marker is resident and outside its spans');
  await host.betweenCheckpoints(async () => {
    host.hide(ranges); // RB2
    resident.load(marker, plan.marker.value);
    const batch = store.batch();
    batch.put(plan.marker.key, plan.marker.value);
    for (const row of plan.withMarker?.rows ?? []) {
      host.put(row); // a later checkpoint writes no earlier value
      batch.put(row.key, row.value);
    }
    await batch.write(); // RB1
  });
  plan.withMarker?.written();
  const goOn = (): void => {
    host.checkUsable();
    plan.progress();
  };
  goOn();
  for (const range of ranges) {
    while (resident.forgetRange(range, ROWS_PER_BATCH_MAX)) await nextTurn(host.clock);
  }
  for (const span of plan.spans) await clearStore(store, span, goOn);
  await writeRows(host, ranges, { ...plan, goOn });
  resident.forget(marker);
  host.show(ranges);
  plan.replaced(); // RB3
}

async function writeRows(
  host: RebuildHost,
  ranges: readonly NameRange[],
  plan: Pick<Rebuild, 'rows' | 'marker'> & { readonly goOn: () => void },
): Promise<void> {
  let batch = host.store.batch();
  let [rows, bytes] = [0, 0];
  for await (const page of plan.rows) {
    for (const row of page) {
      // A batch is written only when a further row follows, so that the last batch holds the last rows and the marker
      // (RB1).
      if (rows >= ROWS_PER_BATCH_MAX || bytes >= BYTES_PER_BATCH_MAX) {
        plan.goOn();
        await batch.write(); // RB4
        await nextTurn(host.clock);
        batch = host.store.batch();
        [rows, bytes] = [0, 0];
      }
      takeRow(host, ranges, row);
      batch.put(row.key, row.value);
      rows++;
      bytes += row.key.length + row.value.length;
    }
  }
  plan.goOn();
  batch.delete(plan.marker.key);
  await batch.write();
}

function takeRow({ resident, isResident }: RebuildHost, ranges: readonly NameRange[], row: Row): void {
  const name = nameOf(row.key);
  assert(anyRangeHolds(ranges, name), 'a rebuild puts rows into its own spans only');
  if (isResident(name)) resident.load(name, copyBytes(row.value));
}

/** Removes the rows of a span from the store, a bounded number at a time. `goOn` throws to end it early. */
export async function clearStore(store: PersistentStore, span: Span, goOn: () => void = () => {}): Promise<void> {
  const cursor = store.cursor(storeRange(span));
  try {
    for (;;) {
      const rows = await cursor.next(ROWS_PER_BATCH_MAX);
      if (rows.length === 0) return;
      goOn();
      const batch = store.batch();
      for (const row of rows) batch.delete(row.key);
      await batch.write();
    }
  } finally {
    await cursor.close();
  }
}
