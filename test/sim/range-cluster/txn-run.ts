import { TRANSACTIONS } from './plans.ts';
import { runSeed as runPlan } from './run.ts';

/**
 * One run of transactions over several ranges that stay as they are. What it finds is in what clients were told and
 * what replicas have, or that the product stops at a broken invariant.
 */
export async function runSeed(seed: number): Promise<{ readonly faults: readonly string[] }> {
  try {
    return await runPlan(seed, TRANSACTIONS[0]?.plan);
  } catch (error) {
    return { faults: [error instanceof Error ? error.message : String(error)] };
  }
}
