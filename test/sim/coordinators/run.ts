/**
 * Runs the product's coordinators over ranges that follow the rules of decision 19: one seed, several sequences of
 * requests.
 */
import fc from 'fast-check';
import { courses, HistoryWorld } from '../../../packages/gateway/test/support/coordinator-histories.ts';

const COURSES = 40;

export async function runSeed(seed: number): Promise<{ readonly faults: readonly string[] }> {
  const faults: string[] = [];
  for (const course of fc.sample(courses, { seed, numRuns: COURSES })) {
    const world = new HistoryWorld(course);
    await world.run();
    faults.push(...world.check());
  }
  return { faults };
}
