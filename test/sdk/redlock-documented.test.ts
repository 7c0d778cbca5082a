/** What the table of `remora/redlock` covers, and what the documentation says of it. No server is needed. */
import { expect, test } from 'vitest';
import { readPage } from '../../packages/cli/test/docs/pages.ts';
import { documentedSentences } from '../e2e/redlock/documented.ts';
import { ACQUIRE_ROWS } from '../e2e/redlock/rows-acquire.ts';
import { HOLD_ROWS } from '../e2e/redlock/rows-hold.ts';
import { INSTANCE_ROWS } from '../e2e/redlock/rows-instance.ts';
import { MAJORITY_ROWS, MINORITY_ROWS } from '../e2e/redlock/rows-outage.ts';
import { USING_ROWS } from '../e2e/redlock/rows-using.ts';
import { SENTENCES } from '../e2e/redlock/sentences.ts';

const ROWS = [INSTANCE_ROWS, ACQUIRE_ROWS, HOLD_ROWS, USING_ROWS, MINORITY_ROWS, MAJORITY_ROWS].flat();

test('each sentence of the documentation of redlock has rows in the table, or a reason to have none', () => {
  const found = documentedSentences();
  const entriesOf = (sentence: string) => SENTENCES.filter(({ begins }) => sentence.startsWith(begins));
  expect(found.filter((sentence) => entriesOf(sentence).length !== 1)).toEqual([]);
  expect(SENTENCES.filter(({ begins }) => !found.some((sentence) => sentence.startsWith(begins)))).toEqual([]);
  const names = new Set(ROWS.map(({ name }) => name));
  expect(names.size).toBe(ROWS.length);
  expect(SENTENCES.flatMap(({ rows = [] }) => rows).filter((name) => !names.has(name))).toEqual([]);
});

const PAGE = 'docs/how-to/locks/move-from-redlock.md';

test('the page lists the differences that the table shows, and no others', () => {
  const [, section = ''] = /^## Differences$([\s\S]*?)^## /m.exec(readPage(PAGE)) ?? [];
  const listed = section.split('\n').filter((line) => /^\| (?!redlock|---)/.test(line));
  const shown = ROWS.flatMap(({ differs }) =>
    differs === undefined ? [] : [`| ${differs.redlock} | ${differs.remora} |`],
  );
  expect(shown.length).toBeGreaterThan(5);
  expect(listed).toEqual(shown);
});

test('the page says how many rows there are', () => {
  const differing = ROWS.filter(({ differs }) => differs !== undefined).length;
  expect(readPage(PAGE)).toContain(
    `${ROWS.length} rows: ${ROWS.length - differing} have the same outcome, ${differing} differ on purpose`,
  );
});
