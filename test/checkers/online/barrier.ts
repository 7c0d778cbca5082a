/**
 * Checks whether barriers hold up those who wait at them, by the knowledge of their users. Events come in the order of
 * real time.
 *
 * Promises:
 * G1. Nobody passes a barrier that one holder kept up during the whole wait.
 * G2. A party that has entered a double barrier was there together with as many parties as it waited for, at some time
 *     since it asked.
 * G3. A party is not told that all have left if another party was inside during the whole time since it left.
 */
import { type Check, type Finding, NOTHING, violation } from '../check.ts';

export type BarrierEvent =
  /** The owner has the barrier up, and relies on that until it is `down`. */
  | { readonly type: 'up' | 'down'; readonly barrier: string; readonly owner: string }
  /** The owner waits until the barrier is down. Then it has passed. */
  | { readonly type: 'waits' | 'passed'; readonly barrier: string; readonly owner: string }
  /** The owner asks to enter. From now on it may be counted, until it is certainly `out`. */
  | { readonly type: 'enters'; readonly barrier: string; readonly owner: string; readonly parties: number }
  | { readonly type: 'entered' | 'out'; readonly barrier: string; readonly owner: string }
  /** The owner asks to leave, or no longer relies on being inside. */
  | { readonly type: 'leaves'; readonly barrier: string; readonly owner: string }
  /** The owner was told that all have left. */
  | { readonly type: 'allLeft'; readonly barrier: string; readonly owner: string };

interface Entering {
  readonly parties: number;
  /** The largest number that may have been there together with it. */
  most: number;
}

interface Barrier {
  /** By owner: since when the barrier is up. */
  readonly up: Map<string, number>;
  readonly waiting: Map<string, number>;
  readonly present: Set<string>;
  readonly entering: Map<string, Entering>;
  readonly inside: Map<string, number>;
  readonly leaving: Map<string, number>;
}

export class BarrierCheck implements Check<BarrierEvent> {
  readonly name = 'barrier';
  readonly #barriers = new Map<string, Barrier>();
  #now = 0;

  observe(event: BarrierEvent): readonly Finding[] {
    const barrier = this.#barrier(event.barrier);
    const { owner } = event;
    const now = ++this.#now;
    switch (event.type) {
      case 'up':
        barrier.up.set(owner, now);
        return NOTHING;
      case 'down':
        barrier.up.delete(owner);
        return NOTHING;
      case 'waits':
        barrier.waiting.set(owner, now);
        return NOTHING;
      case 'passed':
        return all(barrier.up, barrier.waiting.get(owner) ?? now, (holder) =>
          violation('barrier: nobody passes it', `${owner} passed ${event.barrier}, which ${holder} held all the time`),
        );
      case 'enters':
        barrier.present.add(owner);
        barrier.entering.set(owner, { parties: event.parties, most: 0 });
        for (const entering of barrier.entering.values()) entering.most = Math.max(entering.most, barrier.present.size);
        return NOTHING;
      case 'entered':
        barrier.inside.set(owner, now);
        return tooFew(barrier, event);
      case 'leaves':
        barrier.inside.delete(owner);
        barrier.leaving.set(owner, now);
        return NOTHING;
      case 'out':
        for (const map of [barrier.inside, barrier.entering, barrier.leaving]) map.delete(owner);
        barrier.present.delete(owner);
        return NOTHING;
      case 'allLeft':
        return all(barrier.inside, barrier.leaving.get(owner) ?? now, (other) =>
          violation('barrier: all leave together', `${owner} left ${event.barrier}, where ${other} was all the time`),
        );
    }
  }

  finish(): readonly Finding[] {
    return NOTHING;
  }

  #barrier(name: string): Barrier {
    let barrier = this.#barriers.get(name);
    if (barrier === undefined) {
      barrier = {
        ...{ up: new Map(), waiting: new Map(), present: new Set() },
        ...{ entering: new Map(), inside: new Map(), leaving: new Map() },
      };
      this.#barriers.set(name, barrier);
    }
    return barrier;
  }
}

/** The owners that have been there since before that time. */
function all(there: ReadonlyMap<string, number>, since: number, found: (owner: string) => Finding): readonly Finding[] {
  return [...there].filter(([, from]) => from < since).map(([owner]) => found(owner));
}

/** G2. */
function tooFew(
  { entering }: Barrier,
  { owner, barrier }: Extract<BarrierEvent, { type: 'entered' | 'out' }>,
): readonly Finding[] {
  const asked = entering.get(owner);
  entering.delete(owner);
  if (asked === undefined || asked.most >= asked.parties) return NOTHING;
  const { most, parties } = asked;
  return [
    violation('barrier: only together', `${owner} entered ${barrier} for ${parties}, and at most ${most} were there`),
  ];
}
