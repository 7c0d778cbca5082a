/** Changes of ranges by operators while others work: each kind of change, a few times in a row. */
import { type ChangeOutcome, changeOnce } from '../changes/keep-changing.ts';
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
      const outcomes: ChangeOutcome[] = [];
      for (let i = 0; i < times && !signal.aborted; i++) outcomes.push(await changeOnce(change, ranges, random));
      return outcomesText(outcomes);
    },
  };
}

const OUTCOMES: Readonly<Record<ChangeOutcome, string>> = {
  done: 'done',
  failed: 'failed',
  unanswered: 'not begun: no node answered',
  impossible: 'not begun: the ranges do not allow one now',
};

function outcomesText(outcomes: readonly ChangeOutcome[]): string {
  const kinds = Object.entries(OUTCOMES).map(([outcome, text]) => ({
    text,
    count: outcomes.filter((one) => one === outcome).length,
  }));
  const texts = kinds.filter(({ count }) => count > 0).map(({ text, count }) => `${count} ${text}`);
  return texts.join(', ');
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
