/**
 * The one form of lists.
 *
 * LI1. Iterating over a list requests one page after the other, each when the items of the one before were consumed.
 * LI2. The cursor of a page names the place behind it, so a later call, or another process, goes on there. It is text
 *      without a meaning to its reader.
 */
import { ServiceError } from '@remora/base';
import { shown } from '../options/options.ts';

/** One page of a list. */
export interface Page<Item> {
  readonly items: readonly Item[];
  /** Pass it to `page` or `pages` for what follows; undefined: this is the last page. */
  readonly cursor: string | undefined;
}

/** A list that is read page by page: iterate over its items, over its pages, or read one page. */
export class Listing<Item, OnePage extends Page<Item> = Page<Item>> implements AsyncIterable<Item> {
  readonly #read: (cursor: string | undefined) => Promise<OnePage>;

  constructor(read: (cursor: string | undefined) => Promise<OnePage>) {
    this.#read = read;
  }

  /** Reads the page behind a cursor, or the first one. A page before the last may be short, or empty. */
  async page(cursor?: string): Promise<OnePage> {
    if (cursor !== undefined && typeof cursor !== 'string') throw wrongCursor(cursor);
    return this.#read(cursor);
  }

  /** The pages behind a cursor, or all. */
  async *pages(cursor?: string): AsyncGenerator<OnePage, void, undefined> {
    let page = await this.page(cursor);
    yield page;
    while (page.cursor !== undefined) {
      page = await this.page(page.cursor);
      yield page;
    }
  }

  /** The items of all pages. */
  async *[Symbol.asyncIterator](): AsyncGenerator<Item, void, undefined> {
    for await (const { items } of this.pages()) yield* items;
  }

  /** Reads all pages into one array, for lists that are known to be short. */
  async toArray(): Promise<Item[]> {
    const all: Item[] = [];
    for await (const { items } of this.pages()) all.push(...items);
    return all;
  }
}

/** LI2. Bytes as the text of a cursor. */
export function cursorOf(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString('base64url');
}

/** @throws ServiceError INVALID_ARGUMENT for what `cursorOf` does not return. */
export function bytesOfCursor(cursor: string): Uint8Array {
  const bytes = Buffer.from(cursor, 'base64url');
  if (bytes.length > 0 && cursorOf(bytes) === cursor) return bytes;
  throw wrongCursor(cursor);
}

export function wrongCursor(cursor: unknown): ServiceError {
  const message = `cursor: expected the cursor of an earlier page of the same list, got ${shown(cursor)}`;
  return new ServiceError('INVALID_ARGUMENT', message);
}
