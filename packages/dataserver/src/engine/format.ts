/**
 * The format of everything under the engine, and how an older format is raised.
 *
 * F1. The row of the empty key names the format. The row belongs to the store itself (P3).
 * F2. The bare numbers 1 and 2 name formats without checksums. From 3 on the number is followed by a line feed: no
 *     flipped bit turns it into the name of another readable format.
 * F3. Formats 1 and 2 are raised in passes of bounded size, in the order of keys. Each pass writes its sealed rows, and
 *     the last key that they reach, in one batch: after a crash the next start continues behind that key, and no row is
 *     sealed twice. The row with that key is itself sealed.
 * F4. The last batch that makes or raises a store names the format and sets the first mark of the batches
 *     (chained-store.ts). So if there are marks but not this format, that batch is missing although later ones exist.
 */
import { asBuffer, type Bytes, EMPTY_BYTES, type Logger } from '@remora/base';
import { FIRST_MARK, hasMarks } from './chained-store.ts';
import { openRow, sealRow } from './row-checksum.ts';
import type { PersistentStore } from './store.ts';
import { StoreDamagedError, StoreOpenError } from './store-errors.ts';

/**
 * Of keys, records, their encodings. Raised when an older program could not read them. All of these formats are of
 * version 0.1: a further one needs a cluster version, and is written when that is in force (docs/decisions/0100).
 *
 *   4  a mark that each batch sets
 *   3  a checksum in each row
 *   2  markers of snapshots that are being installed: a program that does not know them would run half a state
 *   1  the first
 */
export const ENGINE_FORMAT_VERSION = 4;

const FORMAT_KEY = EMPTY_BYTES;
const FORMAT_ROW = Buffer.from(`${ENGINE_FORMAT_VERSION}\n`);
const WITHOUT_CHECKSUMS = ['1', '2'];
const WITHOUT_MARKS = '3\n';
/**
 * The start of the format row while rows are being sealed; the last sealed key follows. Sealed rows came with format 3.
 */
const SEALED_UP_TO = Buffer.from('to 3: ');
const FIRST_KEY = Buffer.from([0]);
const ROWS_PER_PASS_MAX = 1000;

/**
 * Gives an empty store the current format, and raises an older store to it.
 *
 * @throws {StoreOpenError} if the store has a newer format, or belongs to another program.
 * @throws {StoreDamagedError} if it is unknown how far the raising had come, or its end is missing.
 */
export async function raiseFormat(store: PersistentStore, place: string, logger: Logger): Promise<void> {
  const found = store.get(FORMAT_KEY);
  if (found === undefined) return makeNew(store, place);
  const row = asBuffer(found);
  if (row.equals(FORMAT_ROW)) return;
  const text = row.toString('latin1');
  const reached = sealedUpTo(row, place);
  if (reached === undefined && text !== WITHOUT_MARKS && !WITHOUT_CHECKSUMS.includes(text)) throw refusal(text, place);
  await checkNoMarks(store, place, 'the batch that raised its format');
  if (reached !== undefined) {
    logger.info({ to: ENGINE_FORMAT_VERSION }, 'continues raising the format of the engine');
    return sealRows(store, Buffer.concat([reached, FIRST_KEY])); // F3: the smallest key after `reached`
  }
  logger.info({ from: text.trim(), to: ENGINE_FORMAT_VERSION }, 'raising the format of the engine');
  return text === WITHOUT_MARKS ? writeFormat(store) : sealRows(store, FIRST_KEY);
}

/** The last sealed key, if rows are being sealed. */
function sealedUpTo(row: Buffer, place: string): Bytes | undefined {
  if (!row.subarray(0, SEALED_UP_TO.length).equals(SEALED_UP_TO)) return undefined;
  const reached = openRow(FORMAT_KEY, row)?.subarray(SEALED_UP_TO.length);
  if (reached === undefined) throw new StoreDamagedError(place, 'the checksum of its format is wrong');
  return reached;
}

/** F4. */
async function checkNoMarks(store: PersistentStore, place: string, batch: string): Promise<void> {
  if (await hasMarks(store)) throw new StoreDamagedError(place, `${batch} is missing, and later ones are there`);
}

async function makeNew(store: PersistentStore, place: string): Promise<void> {
  await checkNoMarks(store, place, 'the first batch written to it');
  const cursor = store.cursor({ start: FIRST_KEY, end: EMPTY_BYTES, reverse: false });
  const [foreign] = await cursor.next(1);
  await cursor.close();
  if (foreign !== undefined) {
    throw new StoreOpenError('UNREADABLE', `${place} holds a database that Remora did not make`);
  }
  await writeFormat(store);
}

async function sealRows(store: PersistentStore, start: Bytes): Promise<void> {
  const cursor = store.cursor({ start, end: EMPTY_BYTES, reverse: false });
  try {
    for (;;) {
      const rows = await cursor.next(ROWS_PER_PASS_MAX);
      const last = rows.at(-1);
      if (last === undefined) break;
      const batch = store.batch();
      for (const { key, value } of rows) batch.put(key, sealRow(key, value));
      batch.put(FORMAT_KEY, sealRow(FORMAT_KEY, Buffer.concat([SEALED_UP_TO, last.key])));
      await batch.write();
    }
  } finally {
    await cursor.close();
  }
  await writeFormat(store);
}

/** F4. */
async function writeFormat(store: PersistentStore): Promise<void> {
  const batch = store.batch();
  batch.put(FORMAT_KEY, FORMAT_ROW);
  batch.put(FIRST_MARK, sealRow(FIRST_MARK, EMPTY_BYTES));
  await batch.write();
}

function refusal(text: string, place: string): StoreOpenError {
  const version = Number(text);
  if (version > ENGINE_FORMAT_VERSION) {
    return new StoreOpenError(
      'NEWER_FORMAT',
      `${place} was written in format ${version} by a newer Remora; this one reads up to ${ENGINE_FORMAT_VERSION}: upgrade it`,
    );
  }
  return new StoreOpenError('UNREADABLE', `${place} has an unknown format version "${text}"`);
}
