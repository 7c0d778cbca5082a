import { EMPTY_BYTES } from '@remora/base';
import type { KeyValue } from '@remora/protocol';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { DESCRIPTOR, del, put, StateBed } from '../../../test/support/state-bed.ts';
import { boundsOf } from '../bounds.ts';
import { fetchAll } from './kv-read.ts';
import { scanPlainKeys } from './kv-scan.ts';

/** With bytes that the history's keys escape, and keys that are prefixes of others. */
const KEYS = ['a', 'a\0', 'a\0\xff', 'a\x01', 'b', 'b\0b', 'c', '\xff', '\0'];
const bytes = (key: string): Buffer => Buffer.from(key, 'latin1');

const change = fc.record({ key: fc.constantFrom(...KEYS), length: fc.nat({ max: 30 }), deleted: fc.boolean() });
const keyOrNone = fc.constantFrom('', ...KEYS);

async function filled(changes: readonly { key: string; length: number; deleted: boolean }[]): Promise<StateBed> {
  const bed = new StateBed();
  for (const { key, length, deleted } of changes) {
    const op = deleted
      ? { ...del('', undefined), key: bytes(key) }
      : { ...put('', 'v'.repeat(length)), key: bytes(key) };
    if (op.type !== 'txn') await bed.ok({ type: 'kv', op });
  }
  return bed;
}

/** All pages of a scan, and how many there were. */
async function scanned(
  bed: StateBed,
  span: { readonly key: Uint8Array; readonly end: Uint8Array },
  {
    revision,
    pageBytes,
    rangeEnd,
    ...more
  }: {
    readonly revision: number;
    readonly pageBytes: number;
    readonly rangeEnd: string;
    readonly limit?: number;
    readonly keysOnly?: true;
  },
): Promise<{ kvs: readonly KeyValue[]; last: Uint8Array | undefined }> {
  const end = rangeEnd === '' ? EMPTY_BYTES : Buffer.concat([Buffer.of(3), bytes(rangeEnd)]);
  const bounds = boundsOf({ start: DESCRIPTOR.start, end });
  const view = bed.engine.view();
  const kvs: KeyValue[] = [];
  let key = span.key;
  try {
    for (let pages = 0; pages < 200; pages++) {
      const page = await scanPlainKeys(view, { key, end: span.end, revision, bytes: pageBytes, ...more }, bounds);
      kvs.push(...page.kvs);
      const atRangeEnd = page.next !== undefined && rangeEnd !== '' && Buffer.compare(page.next, bytes(rangeEnd)) >= 0;
      if (page.next === undefined || atRangeEnd) return { kvs, last: page.next };
      expect(Buffer.compare(page.next, key)).toBeGreaterThan(0);
      key = page.next;
    }
  } finally {
    view.release();
  }
  throw new Error('the scan does not end');
}

test('the pages of a scan are what a read of the whole span gives, at every revision', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(change, { maxLength: 25 }),
      keyOrNone,
      keyOrNone,
      fc.integer({ min: 1, max: 60 }),
      async (changes, from, to, pageBytes) => {
        const bed = await filled(changes);
        const span = { key: bytes(from), end: bytes(to) };
        const view = bed.engine.view();
        for (let revision = 0; revision <= bed.state.revision; revision++) {
          const expected = await fetchAll(view, [{ range: span, revision }], { bounds: bed.state, changing: false });
          const { kvs, last } = await scanned(bed, span, { revision, pageBytes, rangeEnd: '' });
          expect(kvs).toEqual(expected.get(span)?.kvs);
          expect(last).toBeUndefined();
        }
        view.release();
      },
    ),
    { numRuns: 60 },
  );
});

test('a scan ends where the range ends, and says that there may be more', async () => {
  const bed = await filled(KEYS.map((key) => ({ key, length: 1, deleted: false })));
  const everything = { key: EMPTY_BYTES, end: EMPTY_BYTES };
  const options = { revision: 0, pageBytes: 5, rangeEnd: 'b' };
  const { kvs, last } = await scanned(bed, everything, options);
  expect(kvs.map(({ key }) => Buffer.from(key).toString('latin1'))).toEqual(['\0', 'a', 'a\0', 'a\0\xff', 'a\x01']);
  expect(last).toEqual(bytes('b'));
  const within = await scanned(bed, { key: EMPTY_BYTES, end: bytes('b') }, options);
  expect(within.last).toBeUndefined();
});

test('a scan of a number of keys returns so many at most, without their values if it only asks for keys', async () => {
  const bed = await filled(KEYS.map((key) => ({ key, length: 20, deleted: false })));
  const everything = { key: EMPTY_BYTES, end: EMPTY_BYTES };
  const view = bed.engine.view();
  const query = { ...everything, revision: 0, bytes: 10_000, limit: 4, keysOnly: true } as const;
  const page = await scanPlainKeys(view, query, boundsOf({ start: DESCRIPTOR.start, end: EMPTY_BYTES }));
  view.release();
  expect(page.kvs.map(({ value }) => value.length)).toEqual([0, 0, 0, 0]);
  const { kvs } = await scanned(bed, everything, { revision: 0, pageBytes: 10_000, rangeEnd: '', limit: 1 });
  expect(kvs.map(({ value }) => value.length)).toEqual(KEYS.map(() => 20));
});
