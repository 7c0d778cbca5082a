/**
 * Reads of entries that have left memory and are needed again: to send them to a lagging follower, or to apply them
 * here.
 *
 * B1. Each reader has at most one read in flight, across terms and roles. This bounds the load on a slow disk.
 * B2. An answer counts only as far as the log now holds the same (index, term), and only if the reader still waits at
 *     the same index. Otherwise it is dropped, and requested again if it is still needed. By log matching, the same
 *     (index, term) is the same entry, whenever it was read.
 * B3. Entries that were read back are used once and do not enter the window: a follower that lags far behind does not
 *     evict the entries that the others need.
 * B4. Only durable entries that are not compacted are requested. If such entries do not come back, although the log was
 *     neither truncated nor compacted in the meantime, the disk has lost data that it had confirmed.
 */
import { assert } from '@remora/base';
import { entryBytes } from './log.ts';
import type { CoreState } from './state.ts';
import type { Entry, EntryRead, ReplicaId } from './types.ts';

/**
 * The largest number of reads whose entries are in progress or handed out to be applied: one is read while one is
 * applied.
 */
const APPLY_READS_MAX = 2;

/** Asks for the entries from `from` to at most `to` that are not in memory (B1). */
export function wantEntries(
  s: CoreState,
  reader: ReplicaId,
  range: { readonly from: number; readonly to: number },
): void {
  if (s.entryReads.isInFlight(reader)) return;
  const { from } = range;
  const to = Math.min(range.to, s.log.windowStart);
  const read = { reader, from, to, maxBytes: s.config.maxEntryBytesPerMessage };
  s.entryReads.begin(read, s.log.truncations);
}

/** Takes the answer to a read. Returns the entries that may be used, from `read.from` on; undefined if none may be. */
export function takeRead(s: CoreState, read: EntryRead, entries: readonly Entry[]): readonly Entry[] | undefined {
  const inFlight = s.entryReads.end(read);
  if (inFlight === undefined) return undefined;
  const usable = isHeld(s, read, entries);
  const unchanged = inFlight.truncations === s.log.truncations && read.from > s.log.startIndex;
  assert(usable || !unchanged, `B4: the log has lost entries from index ${read.from}, which were durable`);
  return usable ? entries : undefined;
}

/** B2. */
function isHeld(s: CoreState, read: EntryRead, entries: readonly Entry[]): boolean {
  let index = read.from;
  for (const entry of entries) {
    if (entry.index !== index || index > read.to || !s.log.matches(index, entry.term)) return false;
    index++;
  }
  return index > read.from;
}

/** Whether the entries to be applied next are on disk only, and not too many are in memory already. */
export function wantsApplyRead(s: CoreState): boolean {
  return (
    s.delivered < s.commit &&
    s.delivered < s.log.windowStart &&
    s.installing === undefined &&
    s.entryReads.loaded === undefined &&
    s.applying.bytes < Math.min(s.config.maxApplyingBytes, APPLY_READS_MAX * s.config.maxEntryBytesPerMessage) &&
    !s.entryReads.isInFlight(s.id)
  );
}

/** Committed entries that can be handed out now, in order; empty if they must be read first. */
export function nextCommitted(s: CoreState): readonly Entry[] {
  const { loaded } = s.entryReads;
  s.entryReads.loaded = undefined;
  if (loaded !== undefined) return loaded;
  return s.log.slice(s.delivered + 1, s.commit, s.config.maxApplyingBytes - s.applying.bytes);
}

/** Entries were read back for apply: they are handed out with the next `Ready`. */
export function keepLoaded(s: CoreState, entries: readonly Entry[]): void {
  if (s.installing === undefined && entries.length > 0) s.entryReads.loaded = entries;
}

/** Counts entries as handed out for apply. */
export function countApplying(s: CoreState, entries: readonly Entry[]): void {
  for (const entry of entries) s.applying.add(entry.index, entryBytes(entry));
}
