/** How the tables of rule-mutations.ts are written. */

export const CORE = 'packages/raft/src/core/';
export const HOST = 'packages/raft/src/multi/host/';
export const LOG = 'packages/raft/src/multi/log/';

/** [name, what is wrong then, file, find, replace, file of the test, test] */
export type RuleRow = readonly [string, string, string, string, string, string, string];
