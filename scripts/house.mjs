// `node scripts/house.mjs`: what neither the linter nor the compiler checks of the sources. Part of `npm run check`.
//
// H1. At most 25 source files in a folder below packages/*/src.
// H2. Lines of comments end at column 120, unless one word alone is longer than 100 characters.
// H3. No test code in packages/*/src but tests: no `test-*.ts`, no import of a test library.
// H4. None of the phrases below in prose for readers: README, docs, help and messages (house style: plain English).

import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { pathToFileURL } from 'node:url';

const FILES_MAX = 25;
const COLUMNS_MAX = 120;

/** Phrases that readers stumble over, and what to write instead. */
export const PHRASES = [
  { pattern: /\bwhoever\b/i, instead: 'name the caller, holder, waiter or client' },
  { pattern: /\bfor want of\b/i, instead: 'because … is missing' },
  { pattern: /\bso-manieth\b/i, instead: 'n-th' },
  { pattern: /\b(is|are) told\b(?! apart)/i, instead: 'name who tells: receives, learns, is notified' },
  { pattern: /\bnobody's to\b/i, instead: 'say who fails to do it' },
  { pattern: /\bhas to do with\b/i, instead: 'say how they are related' },
];

/** Files whose old prose is not rewritten yet. Take a file out when its prose is. */
export const PROSE_TO_DO = [/^docs\/decisions\//, /^CHANGELOG\.md$/];

/** What is wrong with these files, each `{ path, text }`, one line a finding. */
export function findings(files) {
  return [
    ...crowdedFolders(files.map(({ path }) => path)),
    ...files.flatMap((file) => [...wideComments(file), ...testCode(file), ...phrases(file)]),
  ];
}

/** H1. */
function crowdedFolders(paths) {
  const counts = new Map();
  for (const path of paths.filter(isSource)) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
  return [...counts]
    .filter(([, count]) => count > FILES_MAX)
    .map(([folder, count]) => `${folder}: ${count} source files in one folder; at most ${FILES_MAX} (H1)`);
}

/** H2. */
function wideComments({ path, text }) {
  if (!/\.(tsx?|mjs)$/.test(path)) return [];
  const found = [];
  text.split('\n').forEach((line, at) => {
    const isComment = /^\s*(\*|\/\*\*|\/\/)/.test(line);
    if (isComment && [...line].length > COLUMNS_MAX && !/\S{100}|biome-ignore/.test(line)) {
      found.push(`${path}:${at + 1}: a comment beyond column ${COLUMNS_MAX} (H2)`);
    }
  });
  return found;
}

/** H3. */
function testCode({ path, text }) {
  if (!isSource(path)) return [];
  if (/^test-/.test(basename(path))) return [`${path}: test code belongs in the package's test/support (H3)`];
  return /from '(vitest|fast-check)'/.test(text) ? [`${path}: imports a test library (H3)`] : [];
}

/** H4. */
function phrases({ path, text }) {
  if (!path.endsWith('.md') || PROSE_TO_DO.some((pattern) => pattern.test(path))) return [];
  return text.split('\n').flatMap((line, at) => {
    const wrong = PHRASES.filter(({ pattern }) => pattern.test(line));
    return wrong.map(({ pattern, instead }) => `${path}:${at + 1}: ${pattern.source}: ${instead} (H4)`);
  });
}

function isSource(path) {
  return /^packages\/[^/]+\/src\/.*\.tsx?$/.test(path) && !/\.test\.ts$|\/gen\//.test(path);
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const paths = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard'], { encoding: 'utf8' })
    .split('\n')
    .filter((path) => /\.(tsx?|mjs|md)$/.test(path) && !/\/gen\/|^test\/fixtures\/data-/.test(path));
  const files = paths.flatMap((path) => {
    try {
      return [{ path, text: readFileSync(path, 'utf8') }];
    } catch {
      return []; // Deleted, and not committed yet.
    }
  });
  const found = findings(files);
  for (const line of found) console.error(line);
  if (found.length > 0) console.error(`\n${found.length} findings in ${files.length} files; see scripts/house.mjs`);
  process.exitCode = found.length === 0 ? 0 : 1;
}
