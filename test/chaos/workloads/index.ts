import { bank } from './bank.ts';
import { barriers } from './barriers.ts';
import { counters } from './counters.ts';
import { elections } from './elections.ts';
import { kinds } from './kinds.ts';
import { leases } from './leases.ts';
import { listeners } from './listeners.ts';
import { lists } from './lists.ts';
import { locks, lockUsers } from './locks.ts';
import { mirrors } from './mirrors.ts';
import { pastReads } from './past-reads.ts';
import { registers } from './registers.ts';
import { terms } from './terms.ts';
import { txns } from './txns.ts';
import { visits } from './visits.ts';
import { watches } from './watches.ts';
import type { MakeWorkers } from './workload.ts';

/** Locks of all kinds, and primitives that are built on locks. */
const KINDS: readonly MakeWorkers[] = [kinds, terms, elections, barriers, listeners];
/** What the SDK makes of several requests. */
const COMPOSED: readonly MakeWorkers[] = [counters, bank, mirrors];
const ALL: readonly MakeWorkers[] = [registers, lists, txns, ...COMPOSED, locks, ...KINDS, leases, watches, visits];

/**
 * What a client process does: either everything, as one client, or only locks, as several clients with separate
 * sessions.
 */
export const LOADS = {
  all: { workloads: ALL, clients: 1 },
  upgrade: { workloads: [...ALL, pastReads], clients: 1 },
  locks: { workloads: [lockUsers({ locks: 10, users: 1, holdMsMax: 100 }), ...KINDS, visits], clients: 5 },
} as const;

export type LoadName = keyof typeof LOADS;
