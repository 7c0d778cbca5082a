import type { RangeJson } from '@remora/gateway/http/json/cluster';
import type { LiveRangeJson } from '@remora/gateway/http/json/history';

/** A range in a list: what the live states and the answers to a question have in common. */
export interface RangeRow extends LiveRangeJson {
  /** How many entries its slowest replica is behind, as far as that is unusual; absent: not known. */
  readonly behind?: number;
}

/** Replicas further behind are worth a look: a busy follower is some entries behind all the time. */
const BEHIND_USUAL = 1_000;

export function rangeRow({ id, start, end, leaderNode, replicas, state, load }: RangeJson): RangeRow {
  const most = Math.max(0, ...replicas.map(({ logBehind }) => logBehind));
  return {
    ...{ id, start, end, leaderNode, replicas },
    ...(state === undefined ? {} : { bytes: state.bytes, keys: state.keys }),
    ...(load === undefined ? {} : { load }),
    behind: most > BEHIND_USUAL ? most : 0,
  };
}
