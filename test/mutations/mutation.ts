/**
 * A fault for the test build: one place of the source is replaced while the source is loaded.
 *
 * M1. The product's source has no switches: a mutation is text (`find` → `replace`) that a plugin of the test runner or
 *     of the build applies. `find` occurs exactly once in `file`. A test checks that, so that the tables stay correct.
 * M2. Each mutation is caught, either by the unit test that its row names (`RuleMutation`) or by a simulation
 *     (`PlantedBug`).
 */
export interface Mutation {
  /** In kebab-case. It is the value of MUTATION. */
  readonly name: string;
  /** The rule that the replaced text upholds. */
  readonly rule: string;
  /** The path relative to the root of the repository. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/** A mutation that a unit test kills. */
export interface RuleMutation extends Mutation {
  /**
   * The test that fails with the mutation and passes without it: its file relative to the root of the repository, and
   * its full name.
   */
  readonly killedBy: { readonly file: string; readonly test: string };
}

/** The mutated source of `mutation.file`. Throws if the text to replace does not occur exactly once. */
export function mutate(mutation: Mutation, source: string): string {
  const at = source.indexOf(mutation.find);
  if (at === -1) throw new Error(`mutation '${mutation.name}': its text is not in ${mutation.file}`);
  if (source.includes(mutation.find, at + 1)) {
    throw new Error(`mutation '${mutation.name}': its text is more than once in ${mutation.file}`);
  }
  return source.slice(0, at) + mutation.replace + source.slice(at + mutation.find.length);
}
