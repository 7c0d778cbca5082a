/** The machines of a cluster, and the roles of the node on each. */
import type { Random } from '@remora/base';
import { ROLES } from '../../../packages/cli/src/node-options.ts';

export interface MachineOptions {
  /** From 1; not the id of the node on it, because a machine may get another node. */
  readonly id: number;
  readonly roles: readonly (typeof ROLES)[number][];
  /** A founding member; the others join the running cluster. */
  readonly founder: boolean;
  /** Whether it runs from the beginning; if not, it joins during the run. */
  readonly fromStart: boolean;
  /** Whether a joining node on it may become a master, if the machine has the role; false by default. */
  readonly mayBecomeMaster?: boolean;
}

type Roles = MachineOptions['roles'];

interface Layout {
  /** How often it is drawn, relative to the others. */
  readonly weight: number;
  /** All of them masters: the voters of the master group. */
  readonly founders: readonly Roles[];
  readonly others: readonly Roles[];
}

/** The id of the first range, beside the group of the masters. */
export const FIRST_RANGE = 2;

/** More machines would reach the ids of clients. */
export const MACHINES_MAX = 9;

const SPARES = 2;

const GATEWAY: Roles = ['gateway'];
const DATA: Roles = ['data'];

const LAYOUTS: readonly Layout[] = [
  { weight: 6, founders: times(3, ROLES), others: [] },
  { weight: 2, founders: times(5, ROLES), others: [] },
  { weight: 2, founders: times(3, ['master', 'data']), others: times(2, GATEWAY) },
  { weight: 1, founders: times(3, ['master', 'gateway']), others: times(3, DATA) },
  { weight: 1, founders: times(3, ['master']), others: [...times(3, DATA), ...times(2, GATEWAY)] },
];

/** The machines of a cluster, founders first. Every other cluster has one that joins later. */
export function drawMachines(random: Random): readonly MachineOptions[] {
  const { founders, others } = drawLayout(random);
  const late = random.int(2) === 0 ? [random.int(2) === 0 ? ROLES : GATEWAY] : [];
  const all = [...founders, ...others, ...late];
  return all.map((roles, i) => ({
    id: i + 1,
    roles,
    founder: i < founders.length,
    fromStart: i < founders.length + others.length,
  }));
}

/**
 * In one of four runs the master moves replicas (moves.ts). The others have the machines and the faults from before
 * that existed: their seeds keep finding what they found.
 */
export function isMoving(seed: number): boolean {
  return seed % 4 === 3;
}

/**
 * In one of four others the cluster is steered: the masters schedule, and ranges split, merge and move (steering.ts,
 * faults/range-faults.ts). In the rest one range has all keys, as at the founding.
 */
export function isSteered(seed: number): boolean {
  return seed % 4 === 0;
}

/**
 * In one of sixteen runs authentication is on, and users and roles change (user-admin.ts, workloads/rights.ts). None of
 * them is steered.
 */
export function isAuthenticated(seed: number): boolean {
  return seed % 16 === 13;
}

/**
 * In one of sixteen runs, a part of those that are steered, the nodes are of two releases until an upgrade is finalized
 * (releases.ts), and the masters number the revisions from the beginning.
 */
export function isUpgraded(seed: number): boolean {
  return seed % 16 === 12;
}

/** With additional nodes for moved replicas. */
export function withSpares(machines: readonly MachineOptions[]): readonly MachineOptions[] {
  const count = Math.min(SPARES, MACHINES_MAX - machines.length);
  const spares = Array.from({ length: count }, (_, i) => ({
    ...{ id: machines.length + i + 1, roles: DATA, founder: false, fromStart: true },
  }));
  return [...machines, ...spares];
}

function drawLayout(random: Random): Layout {
  let left = random.int(LAYOUTS.reduce((sum, { weight }) => sum + weight, 0));
  for (const layout of LAYOUTS) {
    left -= layout.weight;
    if (left < 0) return layout;
  }
  throw new Error('the weights add up');
}

function times(count: number, roles: Roles): readonly Roles[] {
  return Array.from({ length: count }, () => roles);
}
