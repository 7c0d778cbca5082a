import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { patchBuilt } from './patch.ts';
import { withPlantedTable } from './planted-table.ts';
import { mutationPlugins } from './plugin.ts';
import { SIM_MUTATIONS } from './sim-mutations.ts';
import { MUTATIONS, mutate, mutationNamed } from './table.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));

function sourceOf(file: string): string {
  return readFileSync(ROOT + file, 'utf8');
}

describe('the table of mutations', () => {
  test.each(MUTATIONS)('$name: its text is exactly once in its file, and it is caught somewhere', (mutation) => {
    expect(mutate(mutation, sourceOf(mutation.file))).not.toBe(sourceOf(mutation.file));
    expect(mutation.killedBy !== undefined || (mutation.foundBy?.length ?? 0) > 0).toBe(true);
    if (mutation.killedBy === undefined) return;
    expect(existsSync(ROOT + mutation.killedBy.file)).toBe(true);
    expect(sourceOf(mutation.killedBy.file)).toContain(mutation.killedBy.test);
  });

  test('docs/testing.md shows the planted bugs as they are', () => {
    const page = sourceOf('docs/testing.md');
    expect(page).toBe(withPlantedTable(page, SIM_MUTATIONS));
  });

  test('at least twelve planted bugs pass all unit tests', () => {
    expect(SIM_MUTATIONS.filter(({ caughtBy }) => caughtBy === undefined).length).toBeGreaterThanOrEqual(12);
    for (const { caughtBy } of SIM_MUTATIONS)
      if (caughtBy !== undefined) expect(existsSync(ROOT + caughtBy)).toBe(true);
  });

  test('names are unique', () => {
    expect(new Set(MUTATIONS.map((mutation) => mutation.name)).size).toBe(MUTATIONS.length);
  });
});

describe('a mutation', () => {
  const example = { name: 'x', rule: '', file: 'some/file.ts', find: 'good', replace: 'bad' };

  test('whose text is missing or repeated is refused', () => {
    expect(mutate(example, 'a good thing')).toBe('a bad thing');
    expect(() => mutate(example, 'nothing')).toThrow('not in some/file.ts');
    expect(() => mutate(example, 'good good')).toThrow('more than once in some/file.ts');
  });

  test('that is not in the table is refused, and without a name nothing is changed', () => {
    expect(() => mutationNamed('no-such')).toThrow("there is no mutation 'no-such'");
    expect(() => mutationPlugins('no-such')).toThrow("there is no mutation 'no-such'");
    expect(mutationPlugins(undefined)).toEqual([]);
  });
});

describe('a mutation put into a built program', () => {
  const source =
    'export function one(): number {\n  go();\n  return 1;\n}\nexport function two(): number {\n  go();\n  return 2;\n}\n';
  const built = 'function one() {\n  go();\n  return 1;\n}\nfunction two() {\n  go();\n  return 2;\n}\nother();\n';
  const second = { name: 'x', rule: '', file: 'f.ts', find: '  go();\n  return 2;', replace: '  return 2;' };

  test('changes the one place that it is about, among others that look alike (B1)', async () => {
    expect(await patchBuilt(second, source, built)).toBe(built.replace('  go();\n  return 2;', '  return 2;'));
  });

  test('changes nothing where the program reads otherwise (B2)', async () => {
    expect(await patchBuilt(second, source, built.replace('return 2', 'return two2'))).toBeUndefined();
    expect(await patchBuilt(second, source, '')).toBeUndefined();
  });
});
