import { isAuthenticated, isUpgraded } from '../topology.ts';
import { bank } from './bank.ts';
import { BARRIER, barriers } from './barriers.ts';
import { counters } from './counters.ts';
import { ELECTIONS, elections } from './elections.ts';
import { history } from './history.ts';
import { leases } from './leases.ts';
import { lists } from './lists.ts';
import { KIND_LOCKS, lockKinds } from './lock-kinds.ts';
import { lockListeners } from './lock-listeners.ts';
import { lockTerms, TERM_LOCKS } from './lock-terms.ts';
import { locks } from './locks.ts';
import { mirrors } from './mirrors.ts';
import { pastReads } from './past-reads.ts';
import { registers } from './registers.ts';
import { rights } from './rights.ts';
import { watches } from './watches.ts';
import type { MakeWorkload } from './workload.ts';

/**
 * The lock workloads. In one of nine runs they use locks of all kinds, and in one primitives built on locks: elections,
 * barriers, locks with terms of their own. The other runs have the workloads from before these existed: their seeds
 * keep finding what they found.
 */
function lockWorkloads(seed: number): readonly MakeWorkload[] {
  switch (seed % 9) {
    case 7:
      return [lockTerms, elections, barriers, lockListeners([...TERM_LOCKS, ...ELECTIONS, BARRIER])];
    case 8:
      return [lockKinds, lockListeners(KIND_LOCKS)];
    default:
      return [locks];
  }
}

/**
 * One of nine runs also uses what the SDK makes of several requests: increments, STMs and mirrors. The other runs, and
 * their seeds, stay as they were.
 */
function keyWorkloads(seed: number): readonly MakeWorkload[] {
  return seed % 9 === 6 ? [counters, bank, mirrors] : [];
}

/** All kinds of load of a run. */
export function workloadsOf(seed: number): readonly MakeWorkload[] {
  return [
    ...[registers, lists, ...lockWorkloads(seed), leases, history, watches],
    ...keyWorkloads(seed),
    ...(isAuthenticated(seed) ? [rights] : []),
    ...(isUpgraded(seed) ? [pastReads] : []),
  ];
}
