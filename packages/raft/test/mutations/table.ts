/**
 * Faults for the test build: one place of the source each, replaced while it is loaded, when RAFT_MUTATION names it.
 *
 * M1. The product's source has no switches: a mutation is text (`find` → `replace`), applied by the plugin of the test
 *     runner. `find` occurs exactly once in `file`; a test checks that, so that the table cannot rot.
 * M2. Each is caught: by the test named in `killedBy` (`pnpm mutants:raft`), or by the simulation (`foundBy`).
 */
import { RULE_MUTATIONS } from './rule-mutations.ts';
import { SIM_MUTATIONS } from './sim-mutations.ts';

export interface Mutation {
  /** In kebab-case; the value of RAFT_MUTATION. */
  readonly name: string;
  /** The rule that the replaced text upholds. */
  readonly rule: string;
  /** Path from the root of the repository. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** The test that fails with it, and passes without: its file from the root of the repository, and its full name. */
  readonly killedBy?: { readonly file: string; readonly test: string };
  /** Seeds of the simulation that fail with it, and pass without. */
  readonly foundBy?: readonly number[];
}

export const MUTATIONS: readonly Mutation[] = [...RULE_MUTATIONS, ...SIM_MUTATIONS];

/** The mutation of that name; throws when there is none. */
export function mutationNamed(name: string): Mutation {
  const found = MUTATIONS.find((mutation) => mutation.name === name);
  if (found === undefined) throw new Error(`there is no mutation '${name}': pnpm mutants:raft --list shows them`);
  return found;
}

/** The mutated source of `mutation.file`; throws when the text to replace is not there exactly once. */
export function mutate(mutation: Mutation, source: string): string {
  const at = source.indexOf(mutation.find);
  if (at === -1) throw new Error(`mutation '${mutation.name}': its text is not in ${mutation.file}`);
  if (source.includes(mutation.find, at + 1)) {
    throw new Error(`mutation '${mutation.name}': its text is more than once in ${mutation.file}`);
  }
  return source.slice(0, at) + mutation.replace + source.slice(at + mutation.find.length);
}
