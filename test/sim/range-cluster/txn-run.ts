import { TRANSACTIONS } from './plans.ts';
import { runSeed as runPlan } from './run.ts';

/**
 * One run of transactions over several ranges that do not change. It finds faults in the answers that clients received
 * and in the data of replicas, or the product stops at a broken invariant.
 */
export async function runSeed(seed: number): Promise<{ readonly faults: readonly string[] }> {
  try {
    return await runPlan(seed, TRANSACTIONS[0]?.plan);
  } catch (error) {
    return { faults: [error instanceof Error ? error.message : String(error)] };
  }
}
