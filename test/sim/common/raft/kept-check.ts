/**
 * Checks that the durable and relevant part of a node's log survives every crash, and that recovery finds it.
 *
 * D1. A synced term, and a synced vote in it, is never overwritten by a lower one.
 * D2. A committed entry that was synced stays until it is applied in durable state outside the log.
 * D3. Therefore a log begins no later than that position: a durable checkpoint contains everything before the log's
 *     beginning.
 */
import type { GroupId, RecoveredGroup } from '@remora/raft';
import { require } from '../violation.ts';
import type { DurableGroup } from './durable-log.ts';
import type { ObservedNode } from './observed-node.ts';
import type { Observer } from './observer.ts';

type Held = Pick<DurableGroup, 'term' | 'vote' | 'start' | 'termAt' | 'last'>;

export class KeptCheck {
  readonly #node: ObservedNode;
  readonly #observer: Observer;

  constructor(node: ObservedNode, observer: Observer) {
    this.#node = node;
    this.#observer = observer;
  }

  /** A file was synced. (D1, D3) */
  synced(path: string): void {
    const { durable } = this.#node;
    this.#observer.checked(() => {
      durable.synced(path);
      for (const [groupId, group] of durable.groups) this.#grew(groupId, group);
    });
  }

  #grew(groupId: GroupId, { takenBack, term, vote, start }: DurableGroup): void {
    const stored = this.#node.stored(groupId);
    if (stored === undefined) return;
    const place = this.#place(groupId);
    require(takenBack === undefined, 'durable is kept', () =>
      `${place}: term ${takenBack?.term}, vote ${takenBack?.vote} was overwritten, now ${term}, ${vote}`);
    const { index } = stored.applied;
    require(this.#node.lostState === true || start.index <= index, 'durable is kept', () =>
      `${place}: the log begins behind index ${start.index}, and what is applied is durable up to ${index}`);
  }

  /** The process ended. Compares what the medium holds now with what it held before. */
  ended(): void {
    const { durable } = this.#node;
    this.#observer.checked(() => {
      const before = new Map(durable.groups);
      durable.reread();
      for (const [groupId, had] of before) this.#holds(groupId, had, durable.groups.get(groupId));
    });
  }

  /** The log was opened. Compares what it reports with what the medium holds. */
  recovered(found: ReadonlyMap<GroupId, RecoveredGroup>): void {
    const { durable } = this.#node;
    this.#observer.checked(() => {
      for (const [groupId, group] of found) {
        const medium = durable.groups.get(groupId);
        if (medium !== undefined) this.#holds(groupId, medium, heldBy(group));
      }
      durable.reread();
    });
  }

  #holds(groupId: GroupId, had: Held, has: Held | undefined): void {
    const stored = this.#node.stored(groupId);
    if (stored === undefined) return;
    const place = this.#place(groupId);
    require(has !== undefined, 'durable is kept', () => `${place}: all of it is gone`);
    if (has === undefined) return;
    const vote = has.term > had.term || (has.term === had.term && (had.vote === 0 || has.vote === had.vote));
    require(vote, 'durable is kept', () =>
      `${place}: term ${had.term}, vote ${had.vote} became ${has.term}, ${has.vote}`);
    const truth = this.#observer.group(groupId);
    const upTo = Math.min(had.last, truth.committedIndex);
    for (let index = Math.max(had.start.index, has.start.index, stored.applied.index) + 1; index <= upTo; index++) {
      if (had.termAt(index) !== truth.committedTerm(index)) continue;
      require(has.termAt(index) === had.termAt(index), 'durable is kept', () =>
        `${place}: index ${index} of term ${had.termAt(index)} was synced and is gone`);
    }
  }

  #place(groupId: GroupId): string {
    return `node ${this.#node.id}, group ${groupId}`;
  }
}

function heldBy(found: RecoveredGroup): Held {
  const { hardState, start, outline } = found;
  const terms = termsOf(found);
  return {
    term: hardState.term,
    vote: hardState.vote,
    last: outline.lastIndex,
    start,
    termAt: (index) => (index === start.index ? start.term : terms[index - start.index - 1]),
  };
}

/** The terms of all entries in a log. */
export function termsOf({ start, outline: { terms, lastIndex } }: RecoveredGroup): number[] {
  const all: number[] = [];
  for (const [i, { term }] of terms.entries()) {
    const end = (terms[i + 1]?.index ?? lastIndex + 1) - 1;
    while (start.index + all.length < end) all.push(term);
  }
  return all;
}
