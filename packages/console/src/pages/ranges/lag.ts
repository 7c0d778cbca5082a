import type { RangeJson } from '../../api/cluster-types.ts';

/** Replicas further behind are worth a look: a busy follower is some entries behind all the time. */
const LAG_USUAL = 1_000;

/** How many entries the slowest replica is behind, as far as that is unusual; 0 otherwise. */
export function lagOf({ replicas }: RangeJson): number {
  const most = Math.max(0, ...replicas.map(({ logBehind }) => logBehind));
  return most > LAG_USUAL ? most : 0;
}
