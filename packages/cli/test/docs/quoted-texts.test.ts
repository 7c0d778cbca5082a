/** Texts that tables of the documentation quote from logs and error messages are those of the code. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { ROOT, readPage, shelfPages } from './pages.ts';

/** First cells of tables that quote; a cell may name a code or an exit code besides. */
const QUOTING = /^\| (Log line|Exit code and message|Error) \|/;
/** `text` of a log line in lower-case words, or "text" of a message. */
const QUOTED = /`([a-z]+(?: [a-z]+)+)`|"([^"]+)"/g;

interface Quote {
  readonly page: string;
  readonly text: string;
}

function quotesOf(page: string): readonly Quote[] {
  let quotes = false;
  return readPage(page)
    .split('\n')
    .flatMap((line) => {
      if (!line.startsWith('|')) quotes = false;
      else if (QUOTING.test(line)) quotes = true;
      if (!quotes) return [];
      const [, cell = ''] = line.split('|');
      return [...cell.matchAll(QUOTED)].map(([, log, message]) => ({ page, text: log ?? message ?? '' }));
    });
}

/** What stands for a name or a number is left out, in the page as "…" and in the code as `${…}`. */
function isIn(sources: string, text: string): boolean {
  return text.split('…').every((part) => sources.includes(part.trim()));
}

test('log lines and messages that pages quote are in the code', () => {
  const files = execFileSync('git', ['ls-files', '--', 'packages/*/src/*.ts'], { cwd: ROOT, encoding: 'utf8' });
  const sources = files
    .split('\n')
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
    .map((file) => readFileSync(join(ROOT, file), 'utf8'))
    .join('\n');
  const quotes = shelfPages().flatMap(quotesOf);
  expect(quotes.length).toBeGreaterThan(30);
  expect(quotes.filter(({ text }) => !isIn(sources, text))).toEqual([]);
});
