import { describe, expect, test } from 'vitest';
import { identityOf, type JsonBytes } from '../src/logic/bytes.ts';
import { type Folders, foldersAbove, type TreeLine, treeLines, withPage } from '../src/logic/key-tree.ts';

const folder = (key: JsonBytes) => ({ kind: 'folder', name: key, key }) as const;
const leaf = (key: string) => ({ kind: 'key', name: key, key, createRevision: 1, modRevision: 1, version: 1 }) as const;

function shown(lines: readonly TreeLine[]): readonly string[] {
  return lines.map((line) => `${' '.repeat(line.depth)}${line.type === 'entry' ? String(line.entry.key) : line.type}`);
}

describe('the tree of keys', () => {
  let folders: Folders = new Map();
  folders = withPage(folders, '', { entries: [leaf('a'), folder('a/')], revision: 9, next: 'a/' });
  folders = withPage(folders, 'a/', { entries: [leaf('a/1')], revision: 9 });

  test('closed folders are one line, open ones have their entries below', () => {
    expect(shown(treeLines(folders, new Set(), ''))).toEqual(['a', 'a/', 'more']);
    expect(shown(treeLines(folders, new Set([identityOf('a/')]), ''))).toEqual(['a', 'a/', ' a/1', 'more']);
  });

  test('an open folder that is not read yet says so', () => {
    const unread = withPage(new Map(), '', { entries: [folder('x/')], revision: 9 });
    expect(shown(treeLines(unread, new Set([identityOf('x/')]), ''))).toEqual(['x/', ' loading']);
  });

  test('a further page follows the entries before; a first page replaces them', () => {
    const more = withPage(folders, '', { entries: [folder('b/')], revision: 9 }, 'a/');
    expect(shown(treeLines(more, new Set(), ''))).toEqual(['a', 'a/', 'b/']);
    const again = withPage(more, '', { entries: [folder('c/')], revision: 10 });
    expect(shown(treeLines(again, new Set(), ''))).toEqual(['c/']);
  });

  test('every line has an id of its own, also where a key and a folder have one name', () => {
    const both = withPage(new Map(), '', { entries: [leaf('a/'), folder('a/')], revision: 9 });
    const ids = treeLines(both, new Set(), '').map(({ id }) => id);
    expect(new Set(ids).size).toBe(ids.length);
  });

  test('the folders above a key are its prefixes', () => {
    expect(foldersAbove('/a//b', '/')).toEqual(['/', '/a/', '/a//']);
    expect(foldersAbove('a', '/')).toEqual([]);
    expect(foldersAbove({ base64: 'Lw==' }, '/')).toEqual([]);
  });
});
