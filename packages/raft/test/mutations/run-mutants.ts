import { runMutants } from '../../../../test/mutations/run-mutants.ts';
import { RULE_MUTATIONS } from './rule-mutations.ts';

export function main(args: readonly string[]): Promise<number> {
  const place = 'packages/raft/test/mutations';
  return runMutants({ command: 'pnpm mutants:raft', place, mutations: RULE_MUTATIONS }, args);
}
