import { type Bytes, copyBytes, type EngineView, type Row } from '@remora/base';
import type { KeyValue, KvEvent, Query } from '@remora/protocol';
import { currentKey, historyKey, parseHistoryKey } from '../keys.ts';
import { decodeVersion, isDeletion, toKeyValue } from './record.ts';

export interface HistoryPage {
  /** The newest first. */
  readonly versions: readonly KvEvent[];
  readonly more: boolean;
}

/**
 * Returns the versions of one key before a revision, the newest first (see `Query` `history`).
 *
 * KH1. Up to the compacted revision, only the version that a read at this revision would find is kept for sure; nodes
 *      remove older ones when they like. So the page ends with that one, and leaves it out if it is a deletion.
 */
export async function readHistory(
  view: EngineView,
  { key, before, limit, bytes }: Omit<Extract<Query, { type: 'history' }>, 'type'>,
  compactRevision: number,
): Promise<HistoryPage> {
  const versions: KvEvent[] = [];
  let room = bytes;
  for await (const version of newestFirst(view, key, before === 0 ? Number.MAX_SAFE_INTEGER : before)) {
    const { modRevision } = version.kv;
    if (modRevision <= compactRevision && version.type === 'delete') break; // KH1
    if (versions.length >= limit || room <= 0) return { versions, more: true };
    versions.push(version);
    room -= version.kv.key.length + version.kv.value.length;
    if (modRevision <= compactRevision) break; // KH1
  }
  return { versions, more: false };
}

async function* newestFirst(view: EngineView, key: Bytes, before: number): AsyncGenerator<KvEvent> {
  const row = view.get(currentKey(key));
  const current = row && toKeyValue(copyBytes(key), decodeVersion(row));
  if (current !== undefined && current.modRevision < before) yield { type: 'put', kv: current };
  const span = { start: historyKey(key, 0), end: historyKey(key, before) };
  for await (const rows of view.scan({ ...span, reverse: true })) for (const older of rows) yield versionOf(older);
}

function versionOf(row: Row): KvEvent {
  const { key, revision } = parseHistoryKey(row.key);
  if (!isDeletion(row.value)) return { type: 'put', kv: toKeyValue(key, decodeVersion(row.value)) };
  const kv: KeyValue = {
    ...{ key, value: row.value.subarray(0, 0), createRevision: 0, modRevision: revision, version: 0, lease: 0n },
  };
  return { type: 'delete', kv };
}
