import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { mutate, type RuleMutation } from './mutation.ts';
import { mutationPlugins } from './plugin.ts';
import { MUTATIONS, mutationNamed } from './table.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

describe('the tables of mutations', () => {
  test.each(MUTATIONS)('$name: its text is exactly once in its file', (mutation) => {
    const source = readFileSync(ROOT + mutation.file, 'utf8');
    expect(mutate(mutation, source)).not.toBe(source);
  });

  test('the tests that kill them are there', () => {
    const files = MUTATIONS.flatMap((mutation) => ('killedBy' in mutation ? [killerOf(mutation)] : []));
    expect(files.length).toBeGreaterThan(0);
    expect(files.filter((file) => !existsSync(ROOT + file))).toEqual([]);
  });

  test('names are unique', () => {
    expect(new Set(MUTATIONS.map((mutation) => mutation.name)).size).toBe(MUTATIONS.length);
  });
});

function killerOf(mutation: object): string {
  return (mutation as RuleMutation).killedBy.file;
}

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
