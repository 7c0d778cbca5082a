/**
 * Where the changes of a range take their revisions from (design §8).
 *
 * N1. A range that counts by itself gives the next change one more than the last.
 * N2. In a range that the master numbers, a change takes the lowest revision of its entry's block that is above the
 *     last. This follows from the last revision and the entry alone, so that a replica that goes on in the middle of an
 *     entry (A6 of the range state) comes to what the others came to.
 * N3. A command that may need one, when none above the last is left in the block, is refused before it is executed and
 *     not remembered: nothing changed, and a later attempt has another block. So no revision is at or below an earlier
 *     one, whatever block an entry carries.
 * N4. What changes nothing needs no revision, and the part of a block that is not used is used by nobody.
 * N5. The answer to a command carries the revision of its change. A command that changed nothing answers with the last
 *     revision before its block: that is at least the revision of every write, in any range, that was acknowledged
 *     before the command came (revision-allocation-queue.ts B1), and no later write is at or below it.
 */
import { type Command, needsRevision, type RangeDescriptor, type RevisionBlock } from '@remora/protocol';

/** The revision that the next change has; undefined when there is none for it (N3). */
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

/** The revision that the answer to a command carries (N5); `last` is that of the range behind it. */
export function shownRevision(command: Command, last: number, block: RevisionBlock | undefined): number {
  return block !== undefined && needsRevision(command) ? Math.max(last, block.first - 1) : last;
}
