/**
 * Entries that left memory and are needed again: to be sent to a follower that lags, or to be applied here.
 *
 * B1. One read is under way for each reader, over terms and roles too: what a slow disk is asked for is bounded.
 * B2. What comes back counts only as far as the log holds the same (index, term) now, and the reader still waits at the
 *     same index; otherwise it is dropped, and asked for again if it is still wanted. By log matching, the same
 *     (index, term) is the same entry, whenever it was read.
 * B3. Entries read back are used once and do not enter the window: a follower that lags far does not push out what the
 *     others need.
 * B4. Only entries that are durable and not compacted are asked for. If the log was not truncated meanwhile, and they
 *     are not compacted, and yet did not come, the disk has lost what it had confirmed.
 */
import { assert } from '@remora/base';
import { entryBytes } from './log.ts';
import type { CoreState } from './state.ts';
import type { Entry, EntryRead, ReplicaId } from './types.ts';

/** Reads of so many times the size of one are handed out to be applied, or under way, at most: one is read while one is applied. */
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

/** Takes the answer to a read. Returns the entries that may be used, from `read.from` on; undefined when none may be. */
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

/** Whether entries to be applied next are on disk only, and not too many are at hand already. */
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

/** Committed entries that can be handed out now, in order; empty when they must be read first. */
export function nextCommitted(s: CoreState): readonly Entry[] {
  const { loaded } = s.entryReads;
  s.entryReads.loaded = undefined;
  if (loaded !== undefined) return loaded;
  return s.log.slice(s.delivered + 1, s.commit, s.config.maxApplyingBytes - s.applying.bytes);
}

/** Entries read back to be applied have come: they go out with the next `Ready`. */
export function keepLoaded(s: CoreState, entries: readonly Entry[]): void {
  if (s.installing === undefined && entries.length > 0) s.entryReads.loaded = entries;
}

/** Counts entries as handed out to be applied. */
export function countApplying(s: CoreState, entries: readonly Entry[]): void {
  for (const entry of entries) s.applying.add(entry.index, entryBytes(entry));
}
