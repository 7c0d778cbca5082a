/**
 * How the changes of a range get their revisions (design §8).
 *
 * N1. A range that counts by itself gives the next change one more than the last.
 * N2. In a range that the master numbers, a change takes the lowest revision of its entry's block that is above the
 *     last. This follows from the last revision and the entry alone, so a replica that continues in the middle of an
 *     entry (A6 of the range state) gets the same result as the others.
 * N3. If no revision above the last is left in the block, a command that may need one is refused before it is executed,
 *     and the refusal is not remembered: nothing changed, and a later attempt has another block. So no revision is at
 *     or below an earlier one, whatever block an entry carries.
 * N4. A command that changes nothing needs no revision, and the unused part of a block is never used.
 * N5. The answer to a command carries the revision of its change. A command that changed nothing answers with the last
 *     revision before its block: that is at least the revision of every write, in any range, that was acknowledged
 *     before the command arrived (revision-allocation-queue.ts B1), and every later write is above it.
 * N6. From version 0.2 on, a command may read at any revision below its entry's block. Nothing changes there any more:
 *     later entries have later blocks, as a leader requests them in its term, one after the other; what is prepared
 *     later commits above; and what was prepared before holds back reads of the keys that it may change (T2).
 */
import { brings, FIRST_VERSION } from '@remora/base';
import {
  type Command,
  type CommandBatch,
  needsRevision,
  type RangeDescriptor,
  type RevisionBlock,
} from '@remora/protocol';

/** The revision of the next change; undefined if none is left (N3). */
export function nextRevision(
  source: RangeDescriptor['revisionSource'],
  last: number,
  block: RevisionBlock | undefined,
): number | undefined {
  if (source === 'range') return last + 1;
  if (block === undefined) return undefined;
  const next = Math.max(last + 1, block.first);
  return next < block.first + block.count ? next : undefined;
}

/** The highest revision at which a command of an entry may read (N6); `last` is the range's revision. */
export function readableRevision({ version = FIRST_VERSION, block }: CommandBatch, last: number): number {
  if (block === undefined || !brings(version, 'txnReadsUpToBlock')) return last;
  return Math.max(last, block.first - 1);
}

/** The revision in the answer to a command (N5); `last` is the range's revision after it. */
export function shownRevision(command: Command, last: number, block: RevisionBlock | undefined): number {
  return block !== undefined && needsRevision(command) ? Math.max(last, block.first - 1) : last;
}
