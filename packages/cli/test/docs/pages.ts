import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));
/** It describes each version as it was, so links and commands in it may be out of date. */
const HISTORY = ['CHANGELOG.md'];
const SHELVES = ['start', 'how-to', 'reference', 'understand'];

/** Every page of Markdown that readers see, relative to the root. */
export function allPages(): readonly string[] {
  const packages = readdirSync(join(ROOT, 'packages')).flatMap((name) => [
    join('packages', name),
    join('packages', name, 'test'),
  ]);
  const examples = ['', 'nest', 'bullmq', 'fences'].map((name) => join('examples', name));
  const folders = ['', ...examples, ...packages];
  const found = folders.flatMap((folder) => filesIn(folder).map((name) => join(folder, name)));
  const docs = readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' });
  found.push(...docs.map((name) => join('docs', name)));
  return found.filter((path) => path.endsWith('.md') && !HISTORY.includes(path)).sort();
}

/** The pages of the four shelves, and the README. */
export function shelfPages(): readonly string[] {
  const shelves = SHELVES.map((shelf) => join('docs', shelf, ''));
  return allPages().filter((path) => path === 'README.md' || shelves.some((shelf) => path.startsWith(shelf)));
}

export function readPage(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

function filesIn(folder: string): readonly string[] {
  if (!existsSync(join(ROOT, folder))) return [];
  return readdirSync(join(ROOT, folder), { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name);
}
