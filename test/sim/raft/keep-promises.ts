import { expect } from 'vitest';
import { type RunResult, runSeed } from './run.ts';

/** Runs seeds until one breaks a promise. A broken promise fails the test. */
export async function keepPromises(seeds: readonly number[]): Promise<RunResult[]> {
  const results: RunResult[] = [];
  for (const seed of seeds) {
    const result = await runSeed(seed);
    results.push(result);
    expect(report(result)).toBe('');
  }
  return results;
}

/** Empty if the run passed. */
function report({ seed, failure }: RunResult): string {
  return failure === undefined ? '' : `${failure.detail}\n${failure.last.join('\n')}\npnpm sim:raft --seed ${seed}`;
}
