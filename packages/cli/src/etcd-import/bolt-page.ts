/**
 * Pages of a bbolt database: decodes branch and leaf pages, and buckets that are stored inside a leaf.
 *
 * BP1. A length or position is compared with the page before it is used, so a damaged page is an error and costs no
 *      more memory than its own bytes.
 *
 * Source: the file format of go.etcd.io/bbolt, version 2 (`internal/common/page.go`, `bucket.go`).
 */
import { PAGE_HEADER_BYTES } from './bolt-meta.ts';
import { damaged } from './etcd-file-error.ts';

const [BRANCH, LEAF] = [0x01, 0x02];
const ELEMENT_BYTES = 16;
const IS_BUCKET = 0x01;
const BUCKET_HEADER_BYTES = 16;

export interface BoltRow {
  readonly key: Buffer;
  readonly value: Buffer;
  /** Where the value is in the file. */
  readonly valueAt: number;
  readonly isBucket: boolean;
}

export type BoltPage =
  | { readonly type: 'branch'; readonly children: readonly bigint[] }
  | { readonly type: 'leaf'; readonly rows: readonly BoltRow[] };

/** Where the rows of a bucket are: in a page of their own and those below it, or inside a leaf. */
export type BoltBucket = { readonly root: bigint } | { readonly page: BoltPage };

/** The number of further pages that belong to the page with this header. */
export function overflowOf(header: Buffer): number {
  return header.readUInt32LE(12);
}

/** The id that a page has in its header. */
export function idOf(header: Buffer): bigint {
  return header.readBigUInt64LE(0);
}

/** `at`: where the page begins in the file. `page` is whole, with its overflow. */
export function decodePage(page: Buffer, at: number): BoltPage {
  if (page.length < PAGE_HEADER_BYTES) throw damaged('a page is shorter than its header');
  const [flags, count] = [page.readUInt16LE(8), page.readUInt16LE(10)];
  if (PAGE_HEADER_BYTES + count * ELEMENT_BYTES > page.length) throw damaged('a page counts more rows than it has');
  if (flags === LEAF) return { type: 'leaf', rows: elements(count, (element) => rowOf(page, element, at)) };
  if (flags !== BRANCH) throw damaged(`a page has the type ${flags}, where rows are expected`);
  return { type: 'branch', children: elements(count, (element) => page.readBigUInt64LE(element + 8)) };
}

function elements<T>(count: number, decode: (at: number) => T): readonly T[] {
  return Array.from({ length: count }, (_, i) => decode(PAGE_HEADER_BYTES + i * ELEMENT_BYTES));
}

function rowOf(page: Buffer, element: number, at: number): BoltRow {
  const key = element + page.readUInt32LE(element + 4);
  const value = key + page.readUInt32LE(element + 8);
  const end = value + page.readUInt32LE(element + 12);
  if (end > page.length) throw damaged('a row reaches beyond its page');
  return {
    key: page.subarray(key, value),
    value: page.subarray(value, end),
    valueAt: at + value,
    isBucket: (page.readUInt32LE(element) & IS_BUCKET) !== 0,
  };
}

/** A bucket, from its row in the root bucket. */
export function bucketOf({ value, valueAt }: BoltRow): BoltBucket {
  if (value.length < BUCKET_HEADER_BYTES) throw damaged('a bucket is shorter than its header');
  const root = value.readBigUInt64LE(0);
  if (root !== 0n) return { root };
  return { page: decodePage(value.subarray(BUCKET_HEADER_BYTES), valueAt + BUCKET_HEADER_BYTES) };
}
