import { asBuffer, type Bytes, EMPTY_BYTES, jsonBytes, prefixEnd, utf8 } from '@remora/base';
import type { KeyValue } from '@remora/protocol';
import { invalid } from '../fields.ts';
import type { FolderJson, KvTreeAnswer, LeafJson } from '../json/kv.ts';
import type { RangeCalls } from '../range-calls.ts';
import { onlyThese, type Target, wholeNumber, wholeNumberIn } from '../targets.ts';
import { KeyScan } from './key-scan.ts';
import { isBefore, keyJson, keysOf, type Place, placeOf } from './kv-json.ts';
import { LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX, nextOf, PAGE_BYTES_MAX } from './kv-reads.ts';

/** Keys of one scan: few while it jumps over folders, more while it finds keys without a folder. */
const KEYS_MIN = 8;
const KEYS_MAX = 512;
/** Scans beyond one for each entry: where many keys were deleted, a scan returns nothing. */
const EXTRA_SCANS_MAX = 50;

interface TreeEntry {
  readonly json: FolderJson | LeafJson;
  /** The first key of the entry. */
  readonly key: Bytes;
}

/**
 * One level of the tree that a separator makes of the keys, by a skip-scan: behind the first key of a folder, it goes
 * on at the end of the folder. So a page costs as many short scans as it has entries, however many keys the folders
 * have.
 */
export async function kvTree(calls: RangeCalls, { query }: Target, signal: AbortSignal): Promise<KvTreeAnswer> {
  onlyThese(query, ['prefix', 'separator', 'after', 'limit', 'revision']);
  const prefix = query.get('prefix') ?? EMPTY_BYTES;
  const separator = asBuffer(query.get('separator') ?? utf8('/'));
  if (separator.length === 0) throw invalid('separator: expected at least one character');
  const span = keysOf(prefix);
  const place = placeOf(span, { after: query.get('after'), revision: wholeNumber(query, 'revision', 0) });
  const limit = wholeNumberIn(query, 'limit', { otherwise: LIST_LIMIT_DEFAULT, min: 1, max: LIST_LIMIT_MAX });
  const scan = new KeyScan(calls, span.end, place, signal);
  const { entries, rest } = await new SkipScan(scan, { prefix, separator }).entries(limit);
  return { entries: entries.map(({ json }) => json), revision: scan.revision, ...nextOf(rest) };
}

class SkipScan {
  readonly #scan: KeyScan;
  readonly #prefix: Bytes;
  readonly #separator: Buffer;
  readonly #entries: TreeEntry[] = [];

  constructor(scan: KeyScan, { prefix, separator }: { readonly prefix: Bytes; readonly separator: Buffer }) {
    this.#scan = scan;
    this.#prefix = prefix;
    this.#separator = separator;
  }

  /** `rest`: where the next page begins; undefined: there is none. */
  async entries(limit: number): Promise<{ readonly entries: readonly TreeEntry[]; readonly rest: Place | undefined }> {
    let keys = KEYS_MIN;
    for (
      let scans = limit + EXTRA_SCANS_MAX;
      scans > 0 && this.#entries.length <= limit && !this.#scan.isOver;
      scans--
    ) {
      const kvs = await this.#scan.read({ limit: keys, bytes: PAGE_BYTES_MAX, keysOnly: true });
      keys = this.#take(kvs, limit) ? Math.min(KEYS_MAX, 2 * keys) : KEYS_MIN;
    }
    const over = this.#entries[limit];
    const rest = over === undefined ? this.#scan.place : { from: over.key, revision: this.#scan.revision };
    return { entries: this.#entries.slice(0, limit), rest };
  }

  /** Takes entries up to one more than the limit. Returns whether each key was an entry of its own. */
  #take(kvs: readonly KeyValue[], limit: number): boolean {
    const before = this.#entries.length;
    let folderEnd: Bytes | undefined;
    for (const kv of kvs) {
      if (this.#entries.length > limit) break;
      if (folderEnd !== undefined && isBefore(kv.key, folderEnd)) continue;
      const { entry, end } = this.#entryOf(kv);
      folderEnd = end;
      this.#entries.push(entry);
    }
    // The last key may be one of many in its folder.
    const { place } = this.#scan;
    if (folderEnd !== undefined && place !== undefined && isBefore(place.from, folderEnd)) this.#skipTo(folderEnd);
    return this.#entries.length - before === kvs.length;
  }

  /** An empty end is that of all keys: nothing follows. */
  #skipTo(folderEnd: Bytes): void {
    if (folderEnd.length === 0) this.#scan.finish();
    else this.#scan.goTo(folderEnd);
  }

  /** `end`: the first place behind a folder. */
  #entryOf(kv: KeyValue): { readonly entry: TreeEntry; readonly end: Bytes | undefined } {
    const rest = asBuffer(kv.key).subarray(this.#prefix.length);
    const at = rest.indexOf(this.#separator);
    if (at < 0) {
      return { entry: { json: { kind: 'key', name: jsonBytes(rest), ...keyJson(kv) }, key: kv.key }, end: undefined };
    }
    const name = rest.subarray(0, at + this.#separator.length);
    const key = asBuffer(kv.key).subarray(0, this.#prefix.length + name.length);
    return {
      entry: { json: { kind: 'folder', name: jsonBytes(name), key: jsonBytes(key) }, key },
      end: prefixEnd(key),
    };
  }
}
