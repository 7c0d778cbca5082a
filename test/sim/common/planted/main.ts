/** The command line that searches for the seeds of planted bugs. */
import { CLUSTER_PLANTING } from '../../cluster/planted/planting.ts';
import { RAFT_PLANTING } from '../../raft/planted/planting.ts';
import { findPlanted } from './find.ts';
import type { Loader } from './planter.ts';

const PLANTINGS = [RAFT_PLANTING, CLUSTER_PLANTING];

export function main(simulation: string, args: readonly string[], loader: Loader): Promise<number> {
  const planting = PLANTINGS.find((one) => one.simulation === simulation);
  if (planting === undefined) throw new Error(`there is no simulation '${simulation}'`);
  return findPlanted(planting, args, loader);
}
