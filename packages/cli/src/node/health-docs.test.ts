import { readFileSync } from 'node:fs';
import { HEALTH_CONDITIONS } from '@remora/protocol';
import { expect, test } from 'vitest';

const PAGE = new URL('../../../../docs/how-to/cluster/troubleshoot.md', import.meta.url);

test('the documents explain every condition, with its severity, and no other one', () => {
  const [, section = ''] = /^## Conditions$([\s\S]*?)^## /m.exec(readFileSync(PAGE, 'utf8')) ?? [];
  const rows = section.split('\n').filter((line) => line.startsWith('| `'));
  const documented = rows.flatMap((row) => {
    const [, names = '', severity = '', means = '', advice = ''] = row.split('|').map((cell) => cell.trim());
    expect([means === '', advice === '']).toEqual([false, false]);
    return [...names.matchAll(/`(\w+)`/g)].map(([, name]) => `${name} ${severity}`);
  });
  const known = Object.entries(HEALTH_CONDITIONS).map(([name, { severity }]) => `${name} ${severity}`);
  expect(documented.sort()).toEqual(known.sort());
});
