/** The sentences with which the library `redlock` documents itself: its README, the comments in it, and its types. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const PACKAGE = join(dirname(createRequire(import.meta.url).resolve('redlock')), '../..');

/** Each sentence once, in order, without the marks of Markdown. */
export function documentedSentences(): readonly string[] {
  const texts = [...readmeTexts(readFileSync(join(PACKAGE, 'README.md'), 'utf8')), ...typeTexts()];
  const sentences = texts.flatMap((text) =>
    text
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .replace(/[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}/g, '')
      .replace(/\s+/g, ' ')
      .split(/(?<=[.!?:])\s+(?=[A-Z`])/)
      .map((sentence) => sentence.trim()),
  );
  return [...new Set(sentences.filter((sentence) => /\w \w/.test(sentence)))];
}

/** Paragraphs, list items, and runs of comments in code. */
function readmeTexts(readme: string): readonly string[] {
  const texts: string[] = [];
  let isCode = false;
  let run: string[] = [];
  const end = (): void => {
    if (run.length > 0) texts.push(run.join(' '));
    run = [];
  };
  for (const line of readme.split('\n')) {
    if (line.startsWith('```')) {
      isCode = !isCode;
      end();
      continue;
    }
    const text = isCode ? (/\/\/ (.*)$/.exec(line)?.[1] ?? '') : line.replace(/^(#+|-) .*$/, '');
    const isTrailing = isCode && !/^\s*\/\//.test(line);
    if (text === '' || isTrailing) end();
    if (text !== '') run.push(text);
    if (isTrailing) end();
  }
  end();
  return texts;
}

/** The comments of the declarations, without their examples' code. */
function typeTexts(): readonly string[] {
  const types = readFileSync(join(PACKAGE, 'dist/index.d.ts'), 'utf8');
  return [...types.matchAll(/\/\*\*([\s\S]*?)\*\//g)].flatMap(([, comment = '']) => {
    const [text = '', example = ''] = comment.replace(/^\s*\* ?/gm, '').split('@example');
    const remarks = example.split('\n').map((line) => /^\s*\/\/ (.*)$/.exec(line)?.[1] ?? '\n');
    return [text, ...remarks.join(' ').split('\n')];
  });
}
