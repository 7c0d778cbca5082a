import { registers } from './registers.ts';
import type { MakeWorkload } from './workload.ts';

/** All kinds of load, by name. */
export const WORKLOADS: Readonly<Record<string, MakeWorkload>> = { registers };
