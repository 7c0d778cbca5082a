import { type Clock, compareBytes, type Logger } from '@remora/base';
import {
  type DecideMergeRequest,
  type MergeRound,
  type RangeDescriptor,
  type RpcDialer,
  rangeDecideMerge,
} from '@remora/protocol';
import { type Seal, verdictOn } from '../../state/reshape/merging.ts';
import type { ServedReplica } from '../served-replica.ts';

export interface OrphanedSealsDeps {
  readonly clock: Clock;
  readonly logger: Logger;
  readonly dialer: Pick<RpcDialer, 'channel'>;
  readonly replicas: () => Iterable<ServedReplica>;
  /** All ranges, as the masters told last. */
  readonly knownRanges: () => readonly RangeDescriptor[];
}

const TIMEOUT_MS = 1_000;

/**
 * Seals whose target has left the node of the source's leader: whoever drove the merge is gone, and nothing here will
 * say what became of it.
 *
 * LS1. The leader of the sealed source asks for the word on the round wherever the target is by now, or the range that
 *      has taken it over. With no replica of the target here there is no merge to come to (merge-driver.ts MD2): an
 *      open round is refused for that.
 * LS2. The source is unsealed by that word alone (merges.ts MR4). What the masters told last only says whom to ask: who
 *      has nothing to say says so, and the next look asks anew.
 */
export class OrphanedSeals {
  readonly #deps: OrphanedSealsDeps;
  #looks = 0;

  constructor(deps: OrphanedSealsDeps) {
    this.#deps = deps;
  }

  /** Called about every second. */
  housekeep(): void {
    const here = [...this.#deps.replicas()];
    this.#looks++;
    for (const source of here) {
      const { seal } = source.state.merging;
      if (seal !== undefined && source.serving && !here.some((by) => hasWordOn(seal, source, by))) {
        this.#ask(source, seal);
      }
    }
  }

  /** LS1. */
  #ask(source: ServedReplica, { targetId, round }: Seal): void {
    const { start } = source.state.descriptor;
    const asked = whoMayKnow(this.#deps.knownRanges(), { targetId, start, looks: this.#looks });
    if (asked === undefined) return;
    const seal: MergeRound = { targetId, round };
    const request: DecideMergeRequest = { rangeId: asked.rangeId, sourceId: source.rangeId, seal };
    for (const { nodeId } of asked.replicas) {
      const channel = this.#deps.dialer.channel(nodeId);
      channel.call(rangeDecideMerge, request, { timeoutMs: TIMEOUT_MS }, (_error, verdict) => {
        if (verdict === 'refused') this.#unseal(source, seal);
      });
    }
  }

  /** LS2. Asked of several nodes it may be said several times. */
  #unseal(source: ServedReplica, from: MergeRound): void {
    source.merges.unseal(from, (error) => {
      if (error !== undefined) return; // asked again at the next look
      this.#deps.logger.info({ range: source.rangeId, ...from }, 'a merge that nobody drove any more was refused');
    });
  }
}

function hasWordOn(seal: Seal, source: ServedReplica, by: ServedReplica): boolean {
  return verdictOn(seal, source.rangeId, by.state) !== undefined;
}

/**
 * The target; if it is gone, at every other look the range before `start`, the source's, and at the others all that
 * begin before it by turns: the target was taken over by one of them, which may have been split since.
 */
export function whoMayKnow(
  ranges: readonly RangeDescriptor[],
  { targetId, start, looks }: { readonly targetId: number; readonly start: Uint8Array; readonly looks: number },
): RangeDescriptor | undefined {
  const target = ranges.find(({ rangeId }) => rangeId === targetId);
  if (target !== undefined) return target;
  const before = ranges.filter((range) => compareBytes(range.start, start) < 0);
  const nearestFirst = before.sort((a, b) => compareBytes(b.start, a.start));
  return nearestFirst[looks % 2 === 0 ? 0 : ((looks - 1) / 2) % Math.max(1, nearestFirst.length)];
}
