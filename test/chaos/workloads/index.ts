import { leases } from './leases.ts';
import { lists } from './lists.ts';
import { locks } from './locks.ts';
import { registers } from './registers.ts';
import { txns } from './txns.ts';
import { watches } from './watches.ts';
import type { MakeWorkers } from './workload.ts';

/** All kinds of load. */
export const WORKLOADS: readonly MakeWorkers[] = [registers, lists, txns, locks, leases, watches];
