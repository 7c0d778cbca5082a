// The documentation as packages contain it.
//
// DO1. A document links to nothing that is not in its package: of such links, the words stay.
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { root } from '../lib.mjs';

const LINK = /\[([^\]]+)\]\((?!https?:)([^)#]*)(#[^)]*)?\)/g;
const SHELVES = ['start', 'how-to', 'reference', 'understand'];

/** The text of a document in `docs`. `placeOf` tells where a linked file is in the package, if it is there. */
export function documentOf(name, placeOf) {
  const text = readFileSync(join(root, 'docs', name), 'utf8');
  return text.replace(LINK, (link, words, file, anchor = '') => {
    if (file === '') return link;
    const place = placeOf(posix.join(posix.dirname(name), file));
    return place === undefined ? words : `[${words}](${place}${anchor})`;
  });
}

/** Copies the shelves of the documentation, their index, and the files for deploying, to which they link. */
export function copyDocuments(directory) {
  const pages = ['README.md', ...SHELVES.flatMap((shelf) => filesBelow(shelf))];
  const contained = new Set([...pages, ...SHELVES.map((shelf) => `${shelf}/`)]);
  for (const page of pages) {
    const place = join(directory, 'docs', page);
    mkdirSync(dirname(place), { recursive: true });
    const relative = (file) => {
      const isThere = contained.has(file) || file.startsWith('../deploy/');
      return isThere ? posix.relative(posix.dirname(page), file) : undefined;
    };
    if (page.endsWith('.md')) writeFileSync(place, documentOf(page, relative));
    else cpSync(join(root, 'docs', page), place);
  }
  for (const folder of ['docker', 'grafana', 'kubernetes', 'prometheus', 'systemd']) {
    cpSync(join(root, 'deploy', folder), join(directory, 'deploy', folder), { recursive: true });
  }
}

function filesBelow(folder) {
  return readdirSync(join(root, 'docs', folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => posix.relative(join(root, 'docs'), posix.join(parentPath, name)))
    .sort();
}
