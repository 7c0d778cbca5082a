import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { mutate } from './mutation.ts';
import { patchBuilt } from './patch.ts';
import { mutationPlugins } from './plugin.ts';
import { MUTATIONS, mutationNamed } from './table.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

describe('the tables of mutations', () => {
  test.each(MUTATIONS)('$name: its text is exactly once in its file', (mutation) => {
    const source = readFileSync(ROOT + mutation.file, 'utf8');
    expect(mutate(mutation, source)).not.toBe(source);
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

  test('changes nothing where it brings in a name that may be another one there (B3)', async () => {
    const other = { ...second, replace: '  three();\n  return 2;' };
    expect(await patchBuilt(other, source, built)).toBeUndefined();
    const near = { ...second, replace: '  one();\n  return 2;' };
    expect(await patchBuilt(near, source, built)).toBe(built.replace('  go();\n  return 2;', '  one();\n  return 2;'));
    const member = { ...second, replace: '  go.three({ three: 3 });\n  return 2;' };
    expect(await patchBuilt(member, source, built)).toContain('go.three({ three: 3 });');
  });

  test('changes nothing where the program reads otherwise (B2)', async () => {
    expect(await patchBuilt(second, source, built.replace('return 2', 'return two2'))).toBeUndefined();
    expect(await patchBuilt(second, source, '')).toBeUndefined();
  });
});
