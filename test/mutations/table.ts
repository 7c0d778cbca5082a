/** All mutations: those that a unit test kills, and the bugs that are planted for the simulations. */
import { RULE_MUTATIONS } from '../../packages/raft/test/mutations/rule-mutations.ts';
import { CLUSTER_BUGS } from '../sim/cluster/planted/bugs.ts';
import { COORDINATOR_BUGS } from '../sim/coordinators/planted/bugs.ts';
import { LEASE_BUGS } from '../sim/leases/planted/bugs.ts';
import { LOST_MAJORITY_BUGS } from '../sim/lost-majority/planted/bugs.ts';
import { RAFT_BUGS } from '../sim/raft/planted/bugs.ts';
import { MERGE_BUGS } from '../sim/range-cluster/planted/bugs.ts';
import { FENCE_BUGS } from '../sim/range-cluster/planted/fence-bugs.ts';
import { KINDS_BUGS } from '../sim/range-cluster/planted/kinds-bugs.ts';
import { TXN_BUGS } from '../sim/range-cluster/planted/txn-bugs.ts';
import { REVISION_BUGS } from '../sim/revisions/planted/bugs.ts';
import { TRANSACTION_BUGS } from '../sim/transactions/planted/bugs.ts';
import { HTTP_RULES } from './http-rules.ts';
import type { Mutation } from './mutation.ts';
import { RANGE_RULES } from './range-rules.ts';

export const MUTATIONS: readonly Mutation[] = [
  ...RULE_MUTATIONS,
  ...RANGE_RULES,
  ...HTTP_RULES,
  ...RAFT_BUGS,
  ...CLUSTER_BUGS,
  ...LOST_MAJORITY_BUGS,
  ...LEASE_BUGS,
  ...REVISION_BUGS,
  ...MERGE_BUGS,
  ...KINDS_BUGS,
  ...FENCE_BUGS,
  ...TXN_BUGS,
  ...TRANSACTION_BUGS,
  ...COORDINATOR_BUGS,
];

/** The mutation with that name. Throws if there is none. */
export function mutationNamed(name: string): Mutation {
  const found = MUTATIONS.find((mutation) => mutation.name === name);
  if (found === undefined) throw new Error(`there is no mutation '${name}'; there are: ${names()}`);
  return found;
}

function names(): string {
  return MUTATIONS.map(({ name }) => name).join(', ');
}
