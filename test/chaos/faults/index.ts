import { ALONE } from './alone.ts';
import { CERTIFICATE_FAULTS } from './certificates.ts';
import { CLIENT_FAULTS } from './clients.ts';
import { DISK_FAULTS } from './disks.ts';
import type { Fault } from './fault.ts';
import { KILLS } from './kills.ts';
import { NETWORK_FAULTS } from './network.ts';
import { RANGE_FAULTS } from './ranges.ts';
import { STOPS } from './stops.ts';

/** All kinds of faults. To add one: a file that exports it, and its name here. */
export const FAULTS: readonly Fault[] = [
  ...KILLS,
  ...STOPS,
  ...ALONE,
  ...NETWORK_FAULTS,
  ...DISK_FAULTS,
  ...CLIENT_FAULTS,
  ...RANGE_FAULTS,
  ...CERTIFICATE_FAULTS,
];

const OF_LOCKS: ReadonlySet<string> = new Set([
  ...['client killed', 'client paused', 'lock broken', 'node paused', 'wakes alone', 'restart'],
  ...KILLS.map(({ kind }) => kind),
  ...['partition', 'one-way loss', 'bridge', 'gateway cut off', 'connections reset at a gateway'],
  ...CERTIFICATE_FAULTS.map(({ kind }) => kind),
]);

/** The faults of each course. */
export const FAULTS_OF = {
  faults: FAULTS,
  locks: FAULTS.filter(({ kind }) => OF_LOCKS.has(kind)),
  changes: [],
  upgrade: [],
} as const satisfies Readonly<Record<string, readonly Fault[]>>;
