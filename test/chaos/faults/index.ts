import { ALONE } from './alone.ts';
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
];
