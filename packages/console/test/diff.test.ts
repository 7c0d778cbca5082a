import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type DiffLine, diffLines, withGaps } from '../src/logic/diff.ts';

function sides(lines: readonly DiffLine[]) {
  const before = lines.filter(({ kind }) => kind !== 'added').map(({ text }) => text);
  const after = lines.filter(({ kind }) => kind !== 'removed').map(({ text }) => text);
  return { before: before.join('\n'), after: after.join('\n') };
}

const texts = fc.array(fc.constantFrom('a', 'b', 'c', ''), { maxLength: 30 }).map((lines) => lines.join('\n'));

describe('differences', () => {
  test('both texts can be read from the lines', () => {
    fc.assert(
      fc.property(texts, texts, (before, after) => {
        expect(sides(diffLines(before, after))).toEqual({ before, after });
      }),
    );
  });

  test('lines have the numbers of their places', () => {
    fc.assert(
      fc.property(texts, texts, (before, after) => {
        for (const line of diffLines(before, after)) {
          if (line.before !== undefined) expect(before.split('\n')[line.before - 1]).toBe(line.text);
          if (line.after !== undefined) expect(after.split('\n')[line.after - 1]).toBe(line.text);
        }
      }),
    );
  });

  test('it is the shortest one', () => {
    const changed = diffLines('a\nb\nc\na\nb\nb\na', 'c\nb\na\nb\na\nc').filter(({ kind }) => kind !== 'same');
    expect(changed).toHaveLength(5); // Myers' own example.
  });

  test('texts that have little in common count as replaced as a whole', () => {
    const before = Array.from({ length: 2_000 }, (_, at) => `before ${at}`).join('\n');
    const after = Array.from({ length: 2_000 }, (_, at) => `after ${at}`).join('\n');
    const lines = diffLines(`${before}\nend`, `${after}\nend`);
    expect(lines.filter(({ kind }) => kind === 'removed')).toHaveLength(2_000);
    expect(lines.at(-1)).toMatchObject({ kind: 'same', text: 'end' });
  });

  test('equal lines far from a change are left out, and counted', () => {
    const lines = Array.from({ length: 20 }, (_, at) => `line ${at}`);
    const shown = withGaps(diffLines(lines.join('\n'), lines.with(10, 'new').join('\n')), 2);
    expect(shown).toHaveLength(8);
    expect(shown[0]).toEqual({ skipped: 8 });
    expect(shown.at(-1)).toEqual({ skipped: 7 });
  });
});
