/**
 * A fault for the test build: one place of the source, replaced while it is loaded.
 *
 * M1. The product's source has no switches: a mutation is text (`find` → `replace`), applied by a plugin of the test
 *     runner or of the build. `find` occurs exactly once in `file`; a test checks that, so that the tables cannot rot.
 * M2. Each is caught: by the unit test that its row names (`RuleMutation`), or by a simulation (`PlantedBug`).
 */
export interface Mutation {
  /** In kebab-case; the value of MUTATION. */
  readonly name: string;
  /** The rule that the replaced text upholds. */
  readonly rule: string;
  /** Path from the root of the repository. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/** One that a unit test kills. */
export interface RuleMutation extends Mutation {
  /** The test that fails with it, and passes without: its file from the root of the repository, and its full name. */
  readonly killedBy: { readonly file: string; readonly test: string };
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
