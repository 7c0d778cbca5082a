import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { DESIGN_RULES, designRulesTable, finderOf } from './design-rules.ts';

const DOCS = fileURLToPath(new URL('../../docs/testing/planted-bugs.md', import.meta.url));

test.each(DESIGN_RULES)('design %s, "%s", has planted bugs that something finds', (_section, _rule, names) => {
  expect(names).not.toEqual([]);
  expect(names.filter((name) => finderOf(name) === undefined)).toEqual([]);
});

test('the table of these rules in docs/testing/planted-bugs.md is up to date', () => {
  expect(readFileSync(DOCS, 'utf8')).toContain(`\n${designRulesTable()}\n`);
});
