import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { mutationPlugins } from './plugin.ts';
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
