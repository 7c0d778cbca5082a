/**
 * Checks docs/decisions.
 *
 * DN1. A record begins with its number and title, then one line each for decision, reason and status.
 * DN2. The index lists every record once, with its title.
 * DN3. Links to records, in all texts of the repository, name files that exist.
 * DN4. An amendment is in the status of both records.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));
const FOLDER = join(ROOT, 'docs', 'decisions');
const TEXTS = /\.(?:ts|mjs|md|txt|proto|yml)$/;
const NOT_OURS = new Set(['node_modules', 'dist', 'gen', '.git', '.remora', 'bench-results']);
const FILE = /^(\d{4})-[a-z0-9-]+\.md$/;
const STATUS =
  /^- \*\*Status:\*\* (?:accepted|superseded by \[\d+\]\(\S+\))(?:; (?:amends|amended by|supersedes) .+)?$/;
type Relation = 'amends' | 'amended by' | 'supersedes' | 'superseded by';
const REVERSED: Readonly<Record<Relation, Relation>> = {
  amends: 'amended by',
  'amended by': 'amends',
  supersedes: 'superseded by',
  'superseded by': 'supersedes',
};

const files = readdirSync(FOLDER).filter((name) => FILE.test(name));
const records = files.map((file) => {
  const text = readFileSync(join(FOLDER, file), 'utf8');
  return { file, number: Number(file.slice(0, 4)), text, lines: text.split('\n') };
});

test('every file in the folder is a record with a number of its own, or the index', () => {
  expect(readdirSync(FOLDER).filter((name) => !files.includes(name))).toEqual(['README.md']);
  expect(new Set(records.map(({ number }) => number)).size).toBe(records.length);
});

test.each(records)('$file has a title, a decision, a reason and a status (DN1)', ({ number, lines }) => {
  expect(lines.slice(0, 7)).toEqual([
    expect.stringMatching(new RegExp(`^# ${number}\\. \\S.{10,}[^.]$`)),
    '',
    expect.stringMatching(/^- \*\*Decision:\*\* \S.{20,}[.:]$/),
    expect.stringMatching(/^- \*\*Why:\*\* \S.{20,}[.:]$/),
    expect.stringMatching(STATUS),
    '',
    expect.stringMatching(/\S/),
  ]);
});

test('the index lists every record once, with its title (DN2)', () => {
  const index = readFileSync(join(FOLDER, 'README.md'), 'utf8');
  const listed = index.split('\n').filter((line) => line.startsWith('- **'));
  const titled = listed.map((line) => line.replace(/: [^:]+$/, ''));
  const wanted = records.map(({ file, number, lines }) => {
    return `- **${number}** [${lines[0]?.replace(/^# \d+\. /, '')}](${file})`;
  });
  expect(titled.sort()).toEqual(wanted.sort());
});

test('every link to a record names a file that exists (DN3)', () => {
  const faults: string[] = [];
  for (const path of textsBelow(ROOT)) {
    const isRecord = path.startsWith(FOLDER);
    const text = readFileSync(path, 'utf8');
    const named = text.matchAll(isRecord ? /\]\((\d{4}-[^)#]+)/g : /decisions\/(\d{4}(?:-[a-z0-9-]+(?:\.md)?)?)/g);
    for (const [, name = ''] of named) {
      const exists = files.some((file) => file === name || file === `${name}.md` || file.slice(0, 4) === name);
      if (!exists) faults.push(`${path.slice(ROOT.length)}: ${name}`);
    }
  }
  expect(faults).toEqual([]);
});

test('an amendment is in the status of both records (DN4)', () => {
  const relations = records.flatMap(({ number, lines }) => relationsOf(lines[4] ?? '', number));
  const reversed = relations.map(({ from, to, how }) => ({ from: to, to: from, how: REVERSED[how] }));
  expect(relations.length).toBeGreaterThan(20);
  expect(textOf(reversed)).toEqual(textOf(relations));
});

interface Related {
  readonly from: number;
  readonly to: number;
  readonly how: Relation;
}

function relationsOf(status: string, from: number): readonly Related[] {
  const parts = status.matchAll(/(amends|amended by|supersedes|superseded by) ([^;]+)/g);
  return [...parts].flatMap(([, how, links = '']) => {
    return [...links.matchAll(/\[(\d+)\]/g)].map(([, to]) => ({ from, to: Number(to), how: how as Relation }));
  });
}

function textOf(relations: readonly Related[]): readonly string[] {
  return relations.map(({ from, to, how }) => `${from} ${how} ${to}`).sort();
}

function textsBelow(folder: string): readonly string[] {
  return readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return NOT_OURS.has(entry.name) ? [] : textsBelow(path);
    return entry.isFile() && TEXTS.test(entry.name) ? [path] : [];
  });
}
