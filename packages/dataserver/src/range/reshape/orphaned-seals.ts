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
  readonly sealed: () => readonly ServedReplica[];
  /** All ranges, as the masters last reported them. */
  readonly knownRanges: () => readonly RangeDescriptor[];
}

const TIMEOUT_MS = 1_000;

/**
 * Seals whose target has left the node of the source's leader: the driver of the merge is gone, and nothing on this
 * node can tell how the round was decided.
 *
 * LS1. The leader of the sealed source asks the target, wherever it is by now, or the range that has taken it over, for
 *      the verdict on the round. Without a replica of the target here no merge is possible (merge-driver.ts MD2), so an
 *      open round is refused.
 * LS2. Only that verdict unseals the source (merges.ts MR4). The masters' last report only tells where to ask: a range
 *      that does not know says so, and the next look asks again.
 */
export class OrphanedSeals {
  readonly #deps: OrphanedSealsDeps;
  #looks = 0;

  constructor(deps: OrphanedSealsDeps) {
    this.#deps = deps;
  }

  /** Called about every second. */
  housekeep(): void {
    this.#looks++;
    const sealed = this.#deps.sealed();
    if (sealed.length === 0) return;
    const here = [...this.#deps.replicas()];
    for (const source of sealed) {
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

  /** LS2. Several nodes may answer, so this may run several times. */
  #unseal(source: ServedReplica, from: MergeRound): void {
    source.merges.unseal(from, (error) => {
      if (error !== undefined) return; // asked again at the next look
      this.#deps.logger.info({ range: source.rangeId, ...from }, 'refused a merge that had lost its driver');
    });
  }
}

function hasWordOn(seal: Seal, source: ServedReplica, by: ServedReplica): boolean {
  return verdictOn(seal, source.rangeId, by.state) !== undefined;
}

/**
 * The ranges to ask: the target. If it is gone, by turns the range directly before `start`, the source's start, and any
 * range that begins before it: one of them took the target over, and may have been split since.
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
