import { history } from './history.ts';
import { leases } from './leases.ts';
import { lists } from './lists.ts';
import { lockKinds } from './lock-kinds.ts';
import { locks } from './locks.ts';
import { registers } from './registers.ts';
import { watches } from './watches.ts';
import type { MakeWorkload } from './workload.ts';

/**
 * All kinds of load of a run. In one of nine, locks are of all kinds. The others have those that they had before there were
 * such: what their seeds have found they find again.
 */
export function workloadsOf(seed: number): readonly MakeWorkload[] {
  return [registers, lists, seed % 9 === 8 ? lockKinds : locks, leases, history, watches];
}
