import type { RevisionEvents } from './event-ring.ts';

/** Consecutive groups, and the revision up to which nothing is missing once they are sent. */
export interface Piece {
  readonly groups: RevisionEvents[];
  count: number;
  upTo: number;
}

/**
 * Cuts what a scan found into pieces of at most `eventsMax` events, unless one revision has more (W8 of the hub). Once
 * all are sent, nothing is missing up to `upTo`. There is at least one piece, because a watch moves on even if there is
 * nothing for it.
 */
export function piecesOf(
  groups: readonly RevisionEvents[],
  { upTo, eventsMax }: { readonly upTo: number; readonly eventsMax: number },
): readonly Piece[] {
  let piece: Piece = { groups: [], count: 0, upTo };
  const pieces = [piece];
  for (const group of groups) {
    if (piece.count > 0 && piece.count + group.events.length > eventsMax) {
      piece.upTo = group.revision - 1;
      piece = { groups: [], count: 0, upTo };
      pieces.push(piece);
    }
    piece.groups.push(group);
    piece.count += group.events.length;
  }
  return pieces;
}
