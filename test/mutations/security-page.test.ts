/** The page of attacks and the tables of mutations name each other. */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { HARDENING_RULES } from './hardening-rules.ts';
import { MUTATIONS } from './table.ts';

const page = readFileSync(fileURLToPath(new URL('../../docs/testing/security.md', import.meta.url)), 'utf8');
/** The last column. */
const named = [...page.matchAll(/^\|.*\|([^|]*)\|$/gm)].flatMap(([, cell = '']) =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name),
);

test('every mutation that the page of attacks names is in a table', () => {
  const known = new Set(MUTATIONS.map(({ name }) => name));
  expect(named.length).toBeGreaterThan(0);
  expect(named.filter((name) => name === undefined || !known.has(name))).toEqual([]);
});

test('every mutation of what strangers may hold, cost or show is on the page of attacks', () => {
  expect(HARDENING_RULES.map(({ name }) => name).filter((name) => !named.includes(name))).toEqual([]);
});
