import { type Clock, EMPTY_BYTES, ServiceError } from '@remora/base';
import { masterRanges, RANGES_PAGE_MAX, type RangeOverview } from '@remora/protocol';
import type { ClusterCalls } from '../../admin/cluster-calls.ts';
import { transferLeadership } from '../../admin/leader-transfer.ts';
import { eachOf } from '../../routing/calls/each-of.ts';

const TRANSFERS_AT_A_TIME = 8;

/**
 * Moves the leadership of every range that `from` leads, and of which `to` has a voting replica, to that node.
 *
 * ML1. Each transfer is one of `remora admin transfer-leader`. A transfer that fails does not undo the others; the
 *      first failure is reported when all have ended.
 * ML2. The scheduler may move leaderships of some ranges back, as it keeps their number even among nodes.
 *
 * @throws {ServiceError} etcd's "bad leader transferee" if `to` could take over no range.
 */
export async function moveLeaders(
  deps: { readonly calls: ClusterCalls; readonly clock: Clock },
  { from, to, timeoutMs }: { readonly from: number; readonly to: number; readonly timeoutMs: number },
): Promise<void> {
  let failure: unknown;
  let moved = 0;
  for await (const page of rangePages(deps.calls, timeoutMs)) {
    const movable = page.filter((range) => range.leaderNode === from && hasVoter(range, to));
    await eachOf(movable, TRANSFERS_AT_A_TIME, async (range) => {
      try {
        await transferLeadership(deps, { range, toNode: to, timeoutMs });
        moved++;
      } catch (error) {
        failure ??= error;
      }
    });
  }
  if (failure !== undefined) throw failure;
  if (moved === 0) throw badTransferee(to, `it has no voting replica of a range that node ${from} leads`);
}

export function badTransferee(nodeId: number | bigint, why: string): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', `node ${nodeId} cannot lead: ${why}`, {
    details: { etcd: 'badTransferee' },
  });
}

function hasVoter({ descriptor }: RangeOverview, nodeId: number): boolean {
  return descriptor.replicas.some((replica) => replica.nodeId === nodeId && replica.type === 'voter');
}

async function* rangePages(
  calls: ClusterCalls,
  timeoutMs: number,
): AsyncGenerator<readonly RangeOverview[], undefined> {
  for (let from: Uint8Array = EMPTY_BYTES; ; ) {
    const page = await calls.master(masterRanges, { from, limit: RANGES_PAGE_MAX, rangeId: 0 }, timeoutMs);
    yield page.ranges;
    const last = page.ranges.at(-1);
    if (!page.more || last === undefined) return;
    from = last.descriptor.end;
  }
}
