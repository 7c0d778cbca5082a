import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { RULE_MUTATIONS } from './rule-mutations.ts';
import { mutationsOf, rulesPage, ruleTestsIn } from './rules-page.ts';

const RULES = fileURLToPath(new URL('../rules/', import.meta.url));

const TESTS = readdirSync(RULES)
  .filter((file) => file.endsWith('.test.ts'))
  .flatMap((file) => ruleTestsIn(file, readFileSync(RULES + file, 'utf8')));

/** Sources with a rule of this package. */
const SOURCES = [
  ...['design §4 ▸', 'design §5 ▸'],
  ...[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 25, 26].map((number) => `trap ${number}`),
];

describe('the rules of the package', () => {
  test.each(SOURCES)('%s has a test, and each of its tests has a mutation that it must notice', (source) => {
    const tests = TESTS.filter((rule) => rule.source === source);
    expect(tests).not.toEqual([]);
    expect(tests.filter((rule) => mutationsOf(rule, RULE_MUTATIONS).length === 0).map(({ name }) => name)).toEqual([]);
  });

  test('each mutation is noticed by a test that is there', () => {
    const noticed = new Set(TESTS.flatMap((rule) => mutationsOf(rule, RULE_MUTATIONS)));
    expect(RULE_MUTATIONS.filter((mutation) => !noticed.has(mutation)).map(({ name }) => name)).toEqual([]);
  });

  test('stand in a page that is up to date', async () => {
    await expect(rulesPage(TESTS, RULE_MUTATIONS)).toMatchFileSnapshot(`${RULES}README.md`);
  });
});
