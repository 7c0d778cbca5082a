/** Changes of ranges by operators while others work: each kind of change, a few times in a row. */
import { changeOnce } from '../changes/keep-changing.ts';
import type { ChangeKind } from '../changes/range-desk.ts';
import type { Fault, FaultWorld } from './fault.ts';

const TIMES_MAX = 4;
/** The replicas of a range. A move needs a node without one. */
const REPLICAS = 3;

function changes(kind: string, change: ChangeKind, unavailable?: (world: FaultWorld) => string | undefined): Fault {
  return {
    kind,
    category: 'ranges',
    ...(unavailable !== undefined && { unavailable }),
    async befall({ ranges, signal }, random) {
      const times = 1 + random.int(TIMES_MAX);
      let done = 0;
      for (let i = 0; i < times && !signal.aborted; i++) if (await changeOnce(change, ranges, random)) done += 1;
      return `${done} of ${times} came to their end`;
    },
  };
}

function allNodesHaveAll({ cluster }: FaultWorld): string | undefined {
  return cluster.nodes.length > REPLICAS ? undefined : 'every node has a replica of every range; --nodes 4 has more';
}

export const RANGE_FAULTS: readonly Fault[] = [
  changes('splits', 'split'),
  changes('merges', 'merge'),
  changes('moves', 'move', allNodesHaveAll),
  changes('transfers', 'transfer'),
];
