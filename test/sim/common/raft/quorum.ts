/** A second implementation of majorities: the checks do not rely on the code that they check. */
import type { ConfState } from '@remora/raft';

export function isQuorumOf(conf: ConfState, holds: (id: number) => boolean): boolean {
  return [conf.voters, conf.votersOutgoing].every(
    (side) => side.length === 0 || 2 * side.filter(holds).length > side.length,
  );
}
