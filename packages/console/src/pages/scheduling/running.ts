import type { OperatorJson } from '@remora/gateway/http/json/cluster';
import { operators } from '../../api/cluster.ts';
import type { Resource } from '../../app/hooks.ts';
import { useLiveResource } from '../../app/live.ts';

const EVERY_MS = 2_000;

/** The operators under way; of one range, if it is given. */
export function useRunningOperators(range?: number): Resource<readonly OperatorJson[]> {
  return useLiveResource('operators', {
    of: (state) => state.operators.filter((each) => each.endedMs === undefined && isOf(each, range)),
    key: `operators ${range ?? ''}`,
    load: (signal) => operators({ ended: false, range }, signal),
    everyMs: EVERY_MS,
  });
}

function isOf({ rangeId }: OperatorJson, range: number | undefined): boolean {
  return range === undefined || range === rangeId;
}
