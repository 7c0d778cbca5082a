/**
 * Decides which ranges of a node write their time to the log although nothing else is written (decision 3).
 *
 * TC1. Of the idle ranges that are led here and have replicas on the same nodes, one is enough: their times are close
 *      to each other (range-clock.ts), and a range that gets another leader begins with the latest time that its new
 *      node knows of any range. So thousands of idle ranges write as little as one.
 * TC2. After a change of leader, a range has fallen back by about `carryMs` at most, unless the log of the other range
 *      has not arrived on the new leader's node yet. Then it catches up when that log does.
 * TC3. A range that remembers outcomes writes its own time: only entries remove outcomes whose deadlines have passed.
 */
import type { RangeDescriptor } from '@remora/protocol';

/** A range that is led and served here. */
export interface TimedRange {
  /** Its time now. */
  readonly timeMs: number;
  readonly state: {
    readonly descriptor: Pick<RangeDescriptor, 'replicas'>;
    /** The time of its last entry. */
    readonly rangeTimeMs: number;
    readonly outcomes: { readonly count: number };
  };
}

/** The ids of the nodes of a membership, in order. A list of replicas never changes; another one takes its place. */
const nodesOf = new WeakMap<RangeDescriptor['replicas'], string>();

export class TimeCarriers<Range extends TimedRange> {
  readonly #isLed: (range: Range) => boolean;
  /** By set of nodes: the range whose last entry has the latest time, of those that were visited (TC1). */
  readonly #latest = new Map<string, Range>();

  /** `isLed`: whether the range is led and served here. */
  constructor(isLed: (range: Range) => boolean) {
    this.#isLed = isLed;
  }

  /** The ranges that have to write their time now, of those that are visited: all that something happened to. */
  due(visited: Iterable<Range>, carryMs: number): readonly Range[] {
    const due: Range[] = [];
    for (const [nodes, range] of this.#latest) {
      if (!this.#isLed(range) || nodeSet(range.state.descriptor) !== nodes) this.#latest.delete(nodes);
    }
    for (const range of visited) {
      const nodes = nodeSet(range.state.descriptor);
      const known = this.#latest.get(nodes);
      if (known === undefined || range.state.rangeTimeMs > known.state.rangeTimeMs) this.#latest.set(nodes, range);
      if (range.state.outcomes.count > 0 && isDue(range, carryMs)) due.push(range); // TC3
    }
    for (const range of this.#latest.values()) {
      if (range.state.outcomes.count === 0 && isDue(range, carryMs)) due.push(range);
    }
    return due;
  }
}

function isDue({ timeMs, state }: TimedRange, carryMs: number): boolean {
  return timeMs - state.rangeTimeMs > carryMs;
}

function nodeSet({ replicas }: Pick<RangeDescriptor, 'replicas'>): string {
  let nodes = nodesOf.get(replicas);
  if (nodes === undefined) {
    const ids = replicas.map(({ nodeId }) => nodeId).sort((a, b) => a - b);
    nodes = ids.join();
    nodesOf.set(replicas, nodes);
  }
  return nodes;
}
