/** A tree of keys that is read folder by folder, as lines to show. */
import type { FolderJson, KvTreeAnswer, LeafJson } from '@remora/gateway/http/json/kv';
import { identityOf, type JsonBytes } from './bytes.ts';

type Entry = FolderJson | LeafJson;

interface Folder {
  readonly entries: readonly Entry[];
  /** The cursor of the rest. */
  readonly next?: string | undefined;
}

/** Read folders, by the identity of their prefix. */
export type Folders = ReadonlyMap<string, Folder>;

export type TreeLine =
  | {
      readonly type: 'entry';
      readonly id: string;
      readonly depth: number;
      readonly entry: Entry;
      readonly isOpen: boolean;
    }
  /** The folder is open, and not read yet. */
  | { readonly type: 'loading'; readonly id: string; readonly depth: number }
  | {
      readonly type: 'more';
      readonly id: string;
      readonly depth: number;
      readonly prefix: JsonBytes;
      readonly next: string;
    };

/** The lines of the folder `prefix` and of the open ones below it, from the top down. */
export function treeLines(folders: Folders, open: ReadonlySet<string>, prefix: JsonBytes): readonly TreeLine[] {
  const lines: TreeLine[] = [];
  addLines(lines, { folders, open }, prefix, 0);
  return lines;
}

interface Shown {
  readonly folders: Folders;
  readonly open: ReadonlySet<string>;
}

function addLines(lines: TreeLine[], shown: Shown, prefix: JsonBytes, depth: number): void {
  const id = identityOf(prefix);
  const folder = shown.folders.get(id);
  if (folder === undefined) {
    lines.push({ type: 'loading', id: `loading ${id}`, depth });
    return;
  }
  for (const entry of folder.entries) {
    const entryId = identityOf(entry.key);
    const isOpen = entry.kind === 'folder' && shown.open.has(entryId);
    lines.push({ type: 'entry', id: `${entry.kind} ${entryId}`, depth, entry, isOpen });
    if (isOpen) addLines(lines, shown, entry.key, depth + 1);
  }
  if (folder.next !== undefined) lines.push({ type: 'more', id: `more ${id}`, depth, prefix, next: folder.next });
}

/** The folder with one more page; `after` undefined: with this page alone. */
export function withPage(folders: Folders, prefix: JsonBytes, answer: KvTreeAnswer, after?: string): Folders {
  const id = identityOf(prefix);
  const before = after === undefined ? [] : (folders.get(id)?.entries ?? []);
  return new Map(folders).set(id, { entries: [...before, ...answer.entries], next: answer.next });
}

/** The prefixes of a key that end with a separator: the folders to open so that the key is in sight. */
export function foldersAbove(key: JsonBytes, separator: string): readonly string[] {
  if (typeof key !== 'string') return [];
  const found: string[] = [];
  for (let at = key.indexOf(separator); at >= 0; at = key.indexOf(separator, at + separator.length)) {
    found.push(key.slice(0, at + separator.length));
  }
  return found;
}
