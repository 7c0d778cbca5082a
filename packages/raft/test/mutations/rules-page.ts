/** The page `../rules/README.md`: every test of a rule, and the mutations that it must notice. A test compares. */
import type { RuleMutation } from '../../../../test/mutations/mutation.ts';

/** A test that is named after where its rule stands. */
export interface RuleTest {
  /** For example `trap 4`, or `design §4 ▸`. */
  readonly source: string;
  readonly rule: string;
  /** In `packages/raft/test/rules`. */
  readonly file: string;
  /** As it is called in the file. */
  readonly name: string;
}

const HEAD = `# The rules of the package, and what shows that they hold

Each rule has a test that is named after it, and most have mutations: the code that upholds the rule, broken in one
place, with which the test must fail (\`pnpm mutants:raft\`). This page is made of the tests and of
\`../mutations/rule-mutations.ts\`; \`npx vitest run --project unit packages/raft/test/mutations -u\` writes it anew.

*design* is the design of the whole system, whose rules marked ▸ each close a hole that a review found by a concrete
interleaving; §4 is about the core, §5 about many groups in a process. A *trap* is a bug that a well-known system has
had.
`;

/** The tests in the source of a file, whose titles are plain strings. */
export function ruleTestsIn(file: string, source: string): RuleTest[] {
  const tests: RuleTest[] = [];
  let of = '';
  for (const [, kind, , title = ''] of source.matchAll(/^\s*(describe|test)\((['"])(.*)\2,/gm)) {
    if (kind === 'describe') {
      of = title;
      continue;
    }
    const [, from, rule] = /^((?:design|trap) [^:]+): (.*)$/.exec(title) ?? [];
    if (from === undefined || rule === undefined) throw new Error(`${file}: '${title}' does not say what it is of`);
    tests.push({ source: from, rule: `${of}: ${rule}`, file, name: title });
  }
  return tests;
}

export function rulesPage(tests: readonly RuleTest[], mutations: readonly RuleMutation[]): string {
  const rows = tests.toSorted((a, b) => rank(a.source) - rank(b.source)).map((test) => rowOf(test, mutations));
  return [HEAD, '| Where it stands | Rule | Test | Mutations |', '| --- | --- | --- | --- |', ...rows, ''].join('\n');
}

/** The mutations that a test must notice. */
export function mutationsOf({ file, name }: RuleTest, mutations: readonly RuleMutation[]): readonly RuleMutation[] {
  return mutations.filter(({ killedBy }) => killedBy.file.endsWith(`/${file}`) && killedBy.test === name);
}

function rowOf(test: RuleTest, mutations: readonly RuleMutation[]): string {
  const names = mutationsOf(test, mutations).map(({ name }) => `\`${name}\``);
  return `| ${test.source} | ${test.rule} | \`${test.file}\` | ${names.join(', ')} |`;
}

/** The design first, then traps by their numbers. */
function rank(source: string): number {
  const number = Number(/\d+/.exec(source)?.[0] ?? 0);
  return source.startsWith('trap') ? 100 + number : 2 * number + (source.endsWith('▸') ? 0 : 1);
}
