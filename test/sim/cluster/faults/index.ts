import { DISK_FAULTS } from '../../common/faults/disk-faults.ts';
import type { Fault } from '../../common/faults/fault.ts';
import { NETWORK_FAULTS } from '../../common/faults/network-faults.ts';
import { PROCESS_FAULTS } from '../../common/faults/process-faults.ts';
import type { World } from '../world.ts';
import { AUTH_FAULTS } from './auth-faults.ts';
import { CLIENT_FAULTS } from './client-faults.ts';
import { CLUSTER_FAULTS } from './cluster-faults.ts';
import { LOST_AND_DAMAGED } from './disk-faults.ts';
import { GATEWAY_FAULTS } from './gateway-faults.ts';
import { MEMBER_FAULTS } from './member-faults.ts';
import { MOMENT_FAULTS } from './moment-faults.ts';
import { MOVE_FAULTS } from './move-faults.ts';
import { RANGE_FAULTS } from './range-faults.ts';

/** Faults that may be frequent in a run. To add one: a file that exports it, and its name here. */
export const FREQUENT_FAULTS: readonly Fault<World>[] = [
  ...NETWORK_FAULTS,
  ...PROCESS_FAULTS,
  ...DISK_FAULTS,
  ...CLUSTER_FAULTS,
  ...CLIENT_FAULTS,
  ...MOMENT_FAULTS,
  ...MEMBER_FAULTS,
  ...LOST_AND_DAMAGED,
];

/** Faults that last so long that a run tolerates few. They are drawn separately. */
export const LONG_FAULTS: readonly Fault<World>[] = GATEWAY_FAULTS;

/** All kinds of faults. */
export const FAULTS: readonly Fault<World>[] = [
  ...FREQUENT_FAULTS,
  ...LONG_FAULTS,
  ...AUTH_FAULTS,
  ...MOVE_FAULTS,
  ...RANGE_FAULTS.keys(),
];
