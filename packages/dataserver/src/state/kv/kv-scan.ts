import { type Bytes, copyBytes, EMPTY_BYTES, type EngineView, equalBytes } from '@remora/base';
import type { KeyValue, Query } from '@remora/protocol';
import { lowerEnd, type RangeBounds } from '../bounds.ts';
import { VersionReader } from './kv-versions.ts';
import { decodeVersion, isDeletion, toKeyValue } from './record.ts';

/** The number of engine rows that one page examines: they may be older or newer versions than those that it returns. */
const ROWS_MAX = 20_000;

export interface ScanPage {
  readonly kvs: readonly KeyValue[];
  /** The key to continue from; undefined at the end of the span. */
  readonly next: Bytes | undefined;
}

/**
 * Returns one page of plain keys in order, as far as the range has them (see `Query` `scan`). Records and their older
 * versions lie in the same order: both are read side by side, and no further than the page reaches.
 */
export async function scanPlainKeys(
  view: EngineView,
  {
    key,
    end,
    revision,
    bytes,
    limit = Number.POSITIVE_INFINITY,
    keysOnly,
  }: Omit<Extract<Query, { type: 'scan' }>, 'type'>,
  bounds: Pick<RangeBounds, 'keys'>,
): Promise<ScanPage> {
  const span = { key, end: lowerEnd(end, bounds.keys?.end ?? end) };
  const reader = new VersionReader(view, span, { older: revision > 0 });
  const kvs: KeyValue[] = [];
  try {
    for (let room = bytes, looked = 0; ; ) {
      const next = await reader.nextKey();
      if (next === undefined) return { kvs, next: equalBytes(span.end, end) ? undefined : span.end };
      if (room <= 0 || looked >= ROWS_MAX || kvs.length >= limit) return { kvs, next: copyBytes(next) };
      const versions = await reader.versionsOf(next);
      looked += versions.length;
      const newest = versions.findLast((version) => revision === 0 || version.revision <= revision);
      if (newest === undefined || isDeletion(newest.row)) continue;
      const found = toKeyValue(copyBytes(next), decodeVersion(newest.row));
      const kv = keysOnly ? { ...found, value: EMPTY_BYTES } : found;
      kvs.push(kv);
      room -= kv.key.length + kv.value.length;
    }
  } finally {
    await reader.close();
  }
}
