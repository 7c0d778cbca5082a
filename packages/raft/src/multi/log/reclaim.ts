/** Decides when the oldest segment is freed, and what must be copied out of it first (group-log.ts, W3). */
import type { Entry } from '../../core/types.ts';
import type { GroupId } from '../ports.ts';
import type { LogIndex } from './log-index.ts';
import { readFrames } from './log-recovery.ts';
import { decodeRecords, type LogRecord } from './record-codec.ts';
import type { Segment } from './segment-files.ts';

/** A segment with a smaller live share is moved as soon as it is the oldest. */
const MOVE_FRACTION_MAX = 0.25;
/** Otherwise it is moved if less than this share of the whole log is live: each copied byte frees one. */
const LIVE_FRACTION_MIN = 0.5;
/** With fewer segments, moving is not worthwhile. */
const MOVE_SEGMENTS_MIN = 4;
/** Live entries are moved in pieces, so that appends get their turn in between. */
const MOVE_PIECE_BYTES = 256 * 1024;

export interface LivePiece {
  readonly groupId: GroupId;
  /** Ordered by index, perhaps with gaps. */
  readonly entries: readonly Entry[];
}

/** Whether to free the oldest of `segments`. */
export function isWorthReclaiming(segments: readonly Segment[], index: LogIndex): boolean {
  const head = segments[0];
  if (head === undefined) return false;
  const live = index.liveBytes(head.generation);
  if (live === 0) return true;
  if (segments.length < MOVE_SEGMENTS_MIN) return false;
  if (live <= MOVE_FRACTION_MAX * head.position) return true;
  const total = segments.reduce((sum, segment) => sum + segment.position, 0);
  return index.totalLiveBytes() <= LIVE_FRACTION_MIN * total;
}

/** The live entries of a segment, in pieces of bounded size. */
export async function readLiveEntries(head: Segment, index: LogIndex): Promise<LivePiece[]> {
  // The final contents of the segment: if an entry was overwritten within it, the older form must not be copied.
  const found = new Map<GroupId, Map<number, Entry>>();
  await readFrames(head, (frame) => {
    for (const { groupId, entries } of decodeRecords(frame.payload)) {
      for (const entry of entries) {
        if (!index.isLiveIn(groupId, entry.index, head.generation)) continue;
        let ofGroup = found.get(groupId);
        if (ofGroup === undefined) {
          ofGroup = new Map();
          found.set(groupId, ofGroup);
        }
        ofGroup.set(entry.index, entry);
      }
    }
  });
  return [...found].flatMap(([groupId, entries]) => pieces(groupId, [...entries.values()]));
}

/**
 * Records that move the part of a piece that is still live: entries may have been truncated or compacted since the
 * read.
 */
export function movedRecords(piece: LivePiece, head: Segment, index: LogIndex): LogRecord[] {
  const records: { readonly groupId: GroupId; readonly entries: Entry[]; readonly moved: true }[] = [];
  for (const entry of piece.entries) {
    if (!index.isLiveIn(piece.groupId, entry.index, head.generation)) continue;
    const open = records.at(-1);
    if (open?.entries.at(-1)?.index === entry.index - 1) open.entries.push(entry);
    else records.push({ groupId: piece.groupId, entries: [entry], moved: true });
  }
  return records;
}

function pieces(groupId: GroupId, entries: Entry[]): LivePiece[] {
  entries.sort((a, b) => a.index - b.index);
  const out: LivePiece[] = [];
  let from = 0;
  let bytes = 0;
  entries.forEach((entry, i) => {
    bytes += entry.data.length;
    if (bytes < MOVE_PIECE_BYTES && i < entries.length - 1) return;
    out.push({ groupId, entries: entries.slice(from, i + 1) });
    from = i + 1;
    bytes = 0;
  });
  return out;
}
