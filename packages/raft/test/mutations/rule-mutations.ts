/** What the tests in `../rules` must notice: for each rule, the code that upholds it, broken. */
import type { RuleMutation } from '../../../../test/mutations/mutation.ts';
import { ELECTION_ROWS } from './election-rows.ts';
import { MEMBERSHIP_ROWS } from './membership-rows.ts';
import { NODE_ROWS } from './node-rows.ts';
import { THRIFT_ROWS } from './thrift-rows.ts';

const RULES = 'packages/raft/test/rules/';

export const RULE_MUTATIONS: readonly RuleMutation[] = [
  ...ELECTION_ROWS,
  ...MEMBERSHIP_ROWS,
  ...NODE_ROWS,
  ...THRIFT_ROWS,
].map(([name, rule, file, find, replace, testFile, test]) => ({
  ...{ name, rule, file, find, replace },
  killedBy: { file: RULES + testFile, test },
}));
