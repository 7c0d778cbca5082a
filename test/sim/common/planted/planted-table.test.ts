import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { CLUSTER_PLANTING } from '../../cluster/planted/planting.ts';
import { RAFT_PLANTING } from '../../raft/planted/planting.ts';
import type { PlantedBug } from './planted-bug.ts';
import { plantedTable, withPlantedTable } from './planted-table.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const PAGE = readFileSync(`${ROOT}docs/testing/planted-bugs.md`, 'utf8');

const LAYERS = [
  ...['Raft', 'log', 'engine', 'lease', 'watch', 'transaction', 'lock', 'routing', 'applied once', 'master'],
  ...['snapshot', 'client'],
];

const TABLES = [
  { planting: RAFT_PLANTING, unnoticed: 12, layers: [] },
  { planting: CLUSTER_PLANTING, unnoticed: 14, layers: LAYERS },
];

describe.each(TABLES)('the bugs of $planting.command', ({ planting, unnoticed, layers }) => {
  const { bugs } = planting;

  test('docs/testing/planted-bugs.md shows them as they are', () => {
    expect(PAGE).toBe(withPlantedTable(PAGE, bugs));
  });

  test('many of them pass all unit tests, some of each layer, and the tests that fail with the others are there', () => {
    const passing = bugs.filter(({ caughtBy }) => caughtBy === undefined);
    expect(passing.length).toBeGreaterThanOrEqual(unnoticed);
    expect(layers.filter((layer) => !passing.some((bug) => bug.layer === layer))).toEqual([]);
    for (const { caughtBy } of bugs) if (caughtBy !== undefined) expect(existsSync(ROOT + caughtBy)).toBe(true);
  });
});

describe('a table of planted bugs', () => {
  const bug: PlantedBug = {
    name: 'x',
    rule: 'a rule',
    file: 'f.ts',
    find: 'good',
    replace: 'bad',
    seed: 3,
    caughtBy: 'packages/raft/src/core/x.test.ts',
    properties: ['liveness', 'nothing leaks'],
  };

  test('names the rule, what breaks first, the seed, and the unit test', () => {
    expect(plantedTable([bug]).split('\n')[2]).toBe('| a rule | liveness | 3 | `core/x.test.ts` |');
    const only = { ...bug, faults: ['crash', 'slow disk'] };
    expect(plantedTable([only]).split('\n')[2]).toContain('| 3: crash, slow disk |');
    expect(plantedTable([{ ...bug, layer: 'log' }]).split('\n')[2]).toBe(
      '| log | a rule | liveness | 3 | `core/x.test.ts` |',
    );
  });

  test('with layers is told from one without', () => {
    const layered = { ...bug, layer: 'log' };
    const page = `# Page\n\n${plantedTable([layered])}\n\nText.\n\n${plantedTable([bug])}\n\nEnd.\n`;
    const other = withPlantedTable(page, [{ ...bug, seed: 9 }]);
    expect(other).toBe(page.replace('\n| a rule | liveness | 3 |', '\n| a rule | liveness | 9 |'));
    expect(() => withPlantedTable('# Page\n', [bug])).toThrow('no table');
  });
});
