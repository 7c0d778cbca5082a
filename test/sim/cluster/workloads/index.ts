import { history } from './history.ts';
import { leases } from './leases.ts';
import { lists } from './lists.ts';
import { locks } from './locks.ts';
import { registers } from './registers.ts';
import { watches } from './watches.ts';
import type { MakeWorkload } from './workload.ts';

/** All kinds of load, by name. */
export const WORKLOADS: Readonly<Record<string, MakeWorkload>> = { registers, lists, locks, leases, history, watches };
