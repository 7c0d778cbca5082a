/** The ranges of a run, and what happens to them. */
import type { RangePlan } from './bed.ts';

/** Lists of transactions lie at both ends of the plain keys and of every range in between. */
const LIST_BORDERS = ['i1', 'k1', 'k3', 'l1'];

/** Leases and locks are in the second range. Like the others, it merges with the first one and is split off again. */
export const MERGES: RangePlan = {
  borders: ['leases', 'k1', 'k3'],
  splits: ['leases', 'k1', 'k2', 'k3'],
  merges: 60,
};

export interface NamedPlan {
  readonly name: string;
  readonly plan: RangePlan;
}

export const MANY_RANGES: readonly NamedPlan[] = [
  // Leases and locks are in the first range. Each of the others has a part of the plain keys.
  { name: 'several ranges', plan: { borders: ['k1', 'k3'], splits: [] } },
  { name: 'a range that is split again and again', plan: { borders: [], splits: ['k1', 'k2', 'k3'] } },
  { name: 'ranges that are merged and split again', plan: MERGES },
];

export const TRANSACTIONS: readonly NamedPlan[] = [
  { name: 'several ranges', plan: { borders: LIST_BORDERS, splits: [], transactions: true } },
  {
    name: 'ranges that are split amid them',
    plan: { borders: ['k1'], splits: ['i1', 'k2', 'l1'], transactions: true },
  },
  {
    name: 'ranges that are merged and split',
    plan: { borders: LIST_BORDERS, splits: ['k2'], merges: 25, transactions: true },
  },
  {
    name: 'ranges whose replicas move',
    plan: { borders: LIST_BORDERS, splits: [], moves: 12, transactions: true },
  },
];

export const LEASES: readonly NamedPlan[] = [
  {
    name: 'locks and keys away from their leases',
    plan: { borders: ['lock:lock0', 'lock:lock1', 'k1', 'k3'], splits: [], leases: true },
  },
  {
    name: 'ranges that are parted from their leases, and merged with them',
    plan: {
      borders: ['leases', 'k1', 'k3'],
      splits: ['leases', 'lock:lock1', 'k0', 'k1', 'k2', 'k3'],
      ...{ merges: 60, leases: true },
    },
  },
];

export const MOVES: readonly NamedPlan[] = [
  {
    name: 'ranges that are split, merged, and moved',
    plan: {
      borders: ['leases', 'k1', 'k3'],
      splits: ['leases', 'k1', 'k2', 'k3'],
      merges: 60,
      moves: 10,
      leases: true,
    },
  },
];
