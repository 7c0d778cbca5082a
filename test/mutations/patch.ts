/**
 * Puts a mutation into a program that is built already: building it anew takes a second for each, this milliseconds.
 *
 * B1. What changes is worked out from the compiled form of the source file, with and without the mutation: the lines in
 *     which they differ, and as many around them as it takes to be there once in the program, and to have all names.
 * B2. Where a bundler wrote these lines otherwise (it renames what has the same name in two files), nothing is changed
 *     and the answer is undefined: the caller builds the program with the mutation then.
 * B3. So it is where the mutation uses a name that the lines around it do not have: it may be another's in the program.
 */
import { transformWithEsbuild } from 'vite';
import { type Mutation, mutate } from './mutation.ts';

const AROUND_MAX = 20;
const KEYWORDS: ReadonlySet<string> = new Set(
  ['if', 'else', 'for', 'of', 'const', 'return', 'this'].concat(['true', 'false', 'null', 'void']),
);

/** The program `built` with the mutation in it; `source` is the text of `mutation.file`. (B2) */
export async function patchBuilt(mutation: Mutation, source: string, built: string): Promise<string | undefined> {
  const before = await compiledLines(source);
  const after = await compiledLines(mutate(mutation, source));
  const [first, last] = difference(before, after);
  for (let around = 0; around <= AROUND_MAX; around++) {
    const [head, tail] = [Math.max(0, first - around), Math.max(0, last - around)];
    if (head === before.length - tail) continue;
    const find = asLines(before.slice(head, before.length - tail));
    const text = `\n${built}`;
    const at = text.indexOf(find);
    if (at === -1) return undefined;
    if (text.includes(find, at + 1)) continue;
    const replace = asLines(after.slice(head, after.length - tail));
    const names = namesOf(find);
    if ([...namesOf(replace)].some((name) => !names.has(name))) continue; // B3
    return (text.slice(0, at) + replace + text.slice(at + find.length)).slice(1);
  }
  return undefined;
}

/** Whole ones: with the end of the line before them, and of the last one. */
function asLines(lines: readonly string[]): string {
  return `\n${lines.map((line) => `${line}\n`).join('')}`;
}

async function compiledLines(source: string): Promise<readonly string[]> {
  const { code } = await transformWithEsbuild(source, 'source.ts', { target: 'node20', sourcemap: false });
  return code
    .trimEnd()
    .split('\n')
    .map((line) => line.replace(/^export (?=async |class |const |function )/, ''));
}

/** How many lines at the beginning, and at the end, are the same. */
function difference(a: readonly string[], b: readonly string[]): readonly [number, number] {
  const least = Math.min(a.length, b.length);
  let head = 0;
  while (head < least && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < least - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  return [head, tail];
}

/** Variables and functions; what stands behind a dot, or before a colon, is never renamed. */
function namesOf(code: string): ReadonlySet<string> {
  const names = code.replace(/"(\\.|[^"\\])*"/g, '').matchAll(/(?<![.#\w$])[A-Za-z_$][\w$]*(?!\w*\s*:)/g);
  return new Set([...names].map(([name]) => name).filter((name) => !KEYWORDS.has(name)));
}
