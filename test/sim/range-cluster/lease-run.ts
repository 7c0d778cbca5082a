/** One run of clients with leases, for the bugs planted in those: locks and keys are in other ranges than their leases. */
import { LEASES } from './plans.ts';
import { type RunResult, runSeed as runPlan } from './run.ts';

export function runSeed(seed: number): Promise<RunResult> {
  return runPlan(seed, LEASES[0]?.plan);
}
