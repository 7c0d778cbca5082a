/**
 * Reads a bbolt database, as etcd keeps one. It never writes.
 *
 * BT1. Rows of a bucket come in the order of their keys, each key once; anything else is damage.
 * BT2. A walk visits at most as many pages as the file has, and at most `DEPTH_MAX` levels, so it ends, whatever the
 *      pages point to.
 * BT3. A walk keeps one page of each level in memory, each of at most `PAGE_BYTES_MAX`.
 */
import { compareBytes } from '@remora/base';
import { type BoltMeta, PAGE_HEADER_BYTES, readMeta } from './bolt-meta.ts';
import { type BoltBucket, type BoltPage, type BoltRow, bucketOf, decodePage, idOf, overflowOf } from './bolt-page.ts';
import type { ByteSource } from './byte-source.ts';
import { damaged } from './etcd-file-error.ts';

/** Each level of a real tree has at least twice the pages of the one above. */
const DEPTH_MAX = 48;
/** A page with overflow holds a large row and its neighbours. The default of etcd allows requests of 1.5 MiB. */
const PAGE_BYTES_MAX = 256 * 1024 * 1024;
/** etcd has ten buckets. */
const BUCKETS_MAX = 1_000;

export class BoltFile {
  readonly #source: ByteSource;
  readonly #meta: BoltMeta;
  readonly #buckets = new Map<string, BoltBucket>();

  private constructor(source: ByteSource, meta: BoltMeta) {
    this.#source = source;
    this.#meta = meta;
  }

  /** @throws EtcdFileError when it is no bbolt database, or is damaged. */
  static async open(source: ByteSource): Promise<BoltFile> {
    const file = new BoltFile(source, await readMeta(source));
    for await (const rows of file.#walk({ root: file.#meta.root })) {
      for (const row of rows.filter(({ isBucket }) => isBucket)) {
        if (file.#buckets.size >= BUCKETS_MAX) throw damaged(`it has more than ${BUCKETS_MAX} buckets`);
        file.#buckets.set(row.key.toString('latin1'), bucketOf(row));
      }
    }
    return file;
  }

  has(bucket: string): boolean {
    return this.#buckets.has(bucket);
  }

  /** The rows of a bucket, one page at a time; none if there is no such bucket. */
  async *rows(bucket: string): AsyncGenerator<readonly BoltRow[]> {
    const found = this.#buckets.get(bucket);
    if (found !== undefined) yield* this.#walk(found);
  }

  async *#walk(bucket: BoltBucket): AsyncGenerator<readonly BoltRow[]> {
    const budget = { pages: Math.ceil(this.#source.size / this.#meta.pageSize) };
    const levels: Level[] = [];
    let last: Buffer | undefined;
    let page: BoltPage | undefined = 'page' in bucket ? bucket.page : await this.#page(bucket.root, budget);
    while (page !== undefined) {
      if (page.type === 'leaf') {
        last = inOrder(page.rows, last); // BT1
        if (page.rows.length > 0) yield page.rows;
      } else {
        if (levels.length >= DEPTH_MAX) throw damaged(`its pages are nested more than ${DEPTH_MAX} deep`); // BT2
        levels.push({ children: page.children, at: 0 });
      }
      const next = takeNext(levels);
      page = next === undefined ? undefined : await this.#page(next, budget);
    }
  }

  async #page(id: bigint, budget: { pages: number }): Promise<BoltPage> {
    const { pageSize, pagesMax } = this.#meta;
    if (id < 2n || id >= pagesMax) throw damaged(`page ${id} is referred to, but not in use`);
    const at = Number(id) * pageSize;
    const first = await this.#read(at, pageSize);
    if (idOf(first) !== id) throw damaged(`page ${id} has the id ${idOf(first)}`);
    const pages = 1 + overflowOf(first);
    budget.pages -= pages;
    if (budget.pages < 0) throw damaged('a page is referred to more than once'); // BT2
    const bytes = pages * pageSize;
    if (bytes > PAGE_BYTES_MAX) throw damaged(`page ${id} has ${bytes} bytes; the limit is ${PAGE_BYTES_MAX}`); // BT3
    return decodePage(pages === 1 ? first : await this.#read(at, bytes), at);
  }

  async #read(at: number, length: number): Promise<Buffer> {
    if (at + length > this.#source.size) throw damaged('it is truncated: a page is missing at its end');
    const bytes = await this.#source.read(at, length);
    if (bytes.length < Math.max(length, PAGE_HEADER_BYTES)) throw damaged('it became shorter while it was read');
    return bytes;
  }
}

/** The children of a branch page, and how many of them were visited. */
interface Level {
  readonly children: readonly bigint[];
  at: number;
}

/** Takes the next child from the lowest level that has one left. */
function takeNext(levels: Level[]): bigint | undefined {
  for (let level = levels.at(-1); level !== undefined; level = levels.at(-1)) {
    const next = level.children[level.at++];
    if (next !== undefined) return next;
    levels.pop();
  }
  return undefined;
}

/** BT1. Returns a copy of the last key, because the page is not kept. */
function inOrder(rows: readonly BoltRow[], last: Buffer | undefined): Buffer | undefined {
  let before = last;
  for (const { key } of rows) {
    if (before !== undefined && compareBytes(before, key) >= 0) throw damaged('its rows are out of order');
    before = key;
  }
  return before && Buffer.from(before);
}
