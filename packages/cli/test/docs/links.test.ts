import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import { describe, expect, test } from 'vitest';
import { anchors, codeBlocks, links } from './markdown.ts';
import { allPages, ROOT, readPage, shelfPages } from './pages.ts';

const INDEX = 'docs/README.md';
/** Pages leave `packages/` out. */
const PACKAGE_FOLDER = /^(base|raft|lock|protocol|dataserver|master|gateway|client|cli)\/(src|test|proto|bin)\b/;
/** A decision stays as it was written. */
const RECORDS = /^docs\/decisions\//;

function brokenLinks(page: string, text: string): readonly string[] {
  return links(text).flatMap(({ path, anchor, line }) => {
    const target = path === '' ? page : normalize(join(dirname(page), path));
    if (!existsSync(join(ROOT, target))) return [`${page}:${line}: there is no ${target}`];
    if (anchor === undefined || !target.endsWith('.md')) return [];
    return anchorsOf(target, path === '' ? text : undefined).has(anchor)
      ? []
      : [`${page}:${line}: ${target} has no #${anchor}`];
  });
}

/** By text, as a page may have a thousand links to itself. */
const known = new Map<string, ReadonlySet<string>>();

function anchorsOf(page: string, text = readPage(page)): ReadonlySet<string> {
  const found = known.get(text) ?? anchors(text);
  known.set(text, found);
  return found;
}

test('every link of every page leads to a file, and to a heading of it', () => {
  expect(allPages().flatMap((page) => brokenLinks(page, readPage(page)))).toEqual([]);
});

test('the index lists every page of the shelves', () => {
  const listed = new Set(links(readPage(INDEX)).map(({ path }) => normalize(join('docs', path))));
  expect(shelfPages().filter((page) => page !== 'README.md' && !listed.has(page))).toEqual([]);
});

test('sources, tests and help texts name pages that exist', () => {
  const files = execFileSync('git', ['ls-files', '--', 'packages', 'test', 'scripts', 'bench', 'examples'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  const named = files.split('\n').flatMap((file) => {
    if (!/\.(ts|mjs|proto)$/.test(file) || !existsSync(join(ROOT, file))) return [];
    const text = readFileSync(join(ROOT, file), 'utf8');
    return [...text.matchAll(/(?<![\w/.-])(?:\.\.\/)*(docs\/[\w./-]+\.(?:md|json))/g)].map(([, page = '']) => ({
      file,
      page,
    }));
  });
  expect(named.length).toBeGreaterThan(20);
  expect(named.filter(({ page }) => !existsSync(join(ROOT, page)))).toEqual([]);
});

test('pages name files of the code that exist', () => {
  const named = allPages().flatMap((page) =>
    [...readPage(page).matchAll(/`([\w-]+\/[\w./-]+)`/g)].flatMap(([, text = '']) => {
      const path = PACKAGE_FOLDER.test(text) ? `packages/${text}` : text;
      return /^(packages|scripts|examples)\//.test(path) ? [{ page, path }] : [];
    }),
  );
  expect(named.length).toBeGreaterThan(50);
  const missing = named.filter(({ page, path }) => !RECORDS.test(page) && !existsSync(join(ROOT, path)));
  expect(missing).toEqual([]);
});

test('every how-to page begins with something to type', () => {
  const late = shelfPages().flatMap((page) => {
    if (!page.startsWith('docs/how-to/')) return [];
    const [first] = codeBlocks(readPage(page));
    return first !== undefined && first.line <= 10 ? [] : [page];
  });
  expect(late).toEqual([]);
});

test('links that lead nowhere are found', () => {
  const text = [
    '# A title: `code`',
    '## A title: `code`',
    '[a](#a-title-code-1) [b](#no) [c](nowhere.md)',
    '```',
    '[d](no.md)',
    '```',
  ];
  expect(brokenLinks('README.md', text.join('\n'))).toEqual([
    'README.md:3: README.md has no #no',
    'README.md:3: there is no nowhere.md',
  ]);
});

describe('code blocks', () => {
  test('have a language and attributes, and lose their indentation', () => {
    const [block] = codeBlocks('- item\n\n  ```js file=a.mjs no-run\n  x\n    y\n  ```\n');
    expect(block).toMatchObject({ language: 'js', file: 'a.mjs', code: 'x\n  y\n', line: 3 });
    expect(block?.attributes.has('no-run')).toBe(true);
  });

  test('that are not closed are an error', () => {
    expect(() => codeBlocks('```sh\necho')).toThrow('line 1');
  });
});
