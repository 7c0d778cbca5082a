import type { RangePlan } from './bed.ts';

/** Leases and locks are in the second, which is merged with the first, and split off it, as the others are. */
export const MERGES: RangePlan = {
  borders: ['leases', 'k1', 'k3'],
  splits: ['leases', 'k1', 'k2', 'k3'],
  merges: 60,
};
