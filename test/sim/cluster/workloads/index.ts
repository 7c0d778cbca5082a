import { leases } from './leases.ts';
import { locks } from './locks.ts';
import { registers } from './registers.ts';
import { watches } from './watches.ts';
import type { MakeWorkload } from './workload.ts';

/** All kinds of load, by name. */
export const WORKLOADS: Readonly<Record<string, MakeWorkload>> = { registers, locks, leases, watches };
