import { type Clock, type SeededRandom, ServiceError, sleep } from '@remora/base';
import type { AppliedCommand } from '@remora/dataserver';
import type { AskSplitReply, AskSplitRequest, RangeDescriptor } from '@remora/protocol';
import type { RangeRegistry } from '../../../packages/master/src/ranges/range-registry.ts';
import { replicaIdOn } from './bed.ts';

/** Gives out the ids of splits, as the master does. Answers take time, and some are lost. */
export class SplitDesk {
  readonly #registry: RangeRegistry;
  readonly #random: SeededRandom;
  /** Ranges that splits have created, as reported by the replicas that apply them. */
  readonly #made = new Set<number>();
  #childIds = 20;
  /** While it does not answer: `silent` keeps callers waiting, `refusing` refuses them. */
  mood: 'answering' | 'silent' | 'refusing' = 'answering';

  constructor(registry: RangeRegistry, random: SeededRandom) {
    this.#registry = registry;
    this.#random = random;
  }

  get splits(): number {
    return this.#made.size;
  }

  async askIds(clock: Clock, { range }: AskSplitRequest): Promise<AskSplitReply> {
    const lost = this.#random.int(10) === 0;
    await sleep(clock, this.#random.int(20));
    while (this.mood === 'silent') await sleep(clock, 50);
    if (this.mood === 'refusing') throw new ServiceError('UNAVAILABLE', 'splits are paused');
    const ids = this.idsOf(range);
    await sleep(clock, this.#random.int(20));
    if (lost) throw new ServiceError('UNAVAILABLE', 'no answer');
    return ids;
  }

  idsOf(range: RangeDescriptor): AskSplitReply {
    let childId = 0;
    const asked = this.#registry.askSplit(range, {
      rangeId: () => {
        childId = ++this.#childIds;
        return childId;
      },
      replicaIds: () => replicaIdOn(1, childId),
    });
    return { childId: asked.childId, replicas: asked.replicas };
  }

  applied({ outcome }: AppliedCommand): void {
    if (outcome.ok && outcome.result.type === 'split') this.#made.add(outcome.result.right.rangeId);
  }
}
