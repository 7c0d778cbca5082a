import { MERGES } from './plans.ts';
import { runSeed as runPlan } from './run.ts';

/**
 * One run in which ranges are merged and split. What it finds is in what clients were told and what replicas have, or
 * that the product stops at a broken invariant.
 */
export async function runSeed(seed: number): Promise<{ readonly faults: readonly string[] }> {
  try {
    return await runPlan(seed, MERGES);
  } catch (error) {
    return { faults: [error instanceof Error ? error.message : String(error)] };
  }
}
