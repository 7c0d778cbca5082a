import { MERGES } from './plans.ts';
import { runSeed as runPlan } from './run.ts';

/**
 * One run in which ranges merge and split. It finds faults in the answers that clients received and in the data of
 * replicas, or the product stops at a broken invariant.
 */
export async function runSeed(seed: number): Promise<{ readonly faults: readonly string[] }> {
  try {
    return await runPlan(seed, MERGES);
  } catch (error) {
    return { faults: [error instanceof Error ? error.message : String(error)] };
  }
}
