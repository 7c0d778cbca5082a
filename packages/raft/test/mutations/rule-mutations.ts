/** What the tests in `../rules` must notice: for each rule, the code that upholds it, broken. */
import type { Mutation } from './table.ts';

const CORE = 'packages/raft/test/rules/core-rules.test.ts';

export const RULE_MUTATIONS: readonly Mutation[] = [
  {
    name: 'vote-request-before-fsync',
    rule: 'design §4 ▸: no vote request leaves before the term and the own vote are on disk',
    file: 'packages/raft/src/core/election.ts',
    find: `s.sendDurable({ type: 'vote', from: s.id, to,`,
    replace: `s.send({ type: 'vote', from: s.id, to,`,
    killedBy: { file: CORE, test: 'design §4 ▸: no vote request leaves before the term and the own vote are on disk' },
  },
  {
    name: 'vote-before-fsync',
    rule: 'design §4 ▸: no vote leaves before the term and the vote are on disk',
    file: 'packages/raft/src/core/election.ts',
    find: `s.sendDurable({ type: 'voteResponse', from: s.id, to: m.from, term: s.term, reject: false });`,
    replace: `s.send({ type: 'voteResponse', from: s.id, to: m.from, term: s.term, reject: false });`,
    killedBy: { file: CORE, test: 'design §4 ▸: no vote leaves before the term and the vote are on disk' },
  },
];
