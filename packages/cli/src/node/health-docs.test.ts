import { readFileSync } from 'node:fs';
import { HEALTH_CONDITIONS } from '@remora/protocol';
import { expect, test } from 'vitest';

const OPERATIONS = new URL('../../../../docs/how-to/operations.md', import.meta.url);

test('the documents explain every condition, with its severity, and no other one', () => {
  const [, section = ''] =
    /^### What is wrong: conditions$([\s\S]*?)^### /m.exec(readFileSync(OPERATIONS, 'utf8')) ?? [];
  const rows = section.split('\n').filter((line) => line.startsWith('| `'));
  const documented = rows.flatMap((row) => {
    const [, names = '', severity = '', means = '', advice = ''] = row.split('|').map((cell) => cell.trim());
    expect([means === '', advice === '']).toEqual([false, false]);
    return [...names.matchAll(/`(\w+)`/g)].map(([, name]) => `${name} ${severity}`);
  });
  const known = Object.entries(HEALTH_CONDITIONS).map(([name, { severity }]) => `${name} ${severity}`);
  expect(documented.sort()).toEqual(known.sort());
});
