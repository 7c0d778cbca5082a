/**
 * Text files that drive code and hold what it answers (in the manner of cockroachdb/datadriven):
 *
 *   # a comment
 *   command word key=value list=(1,2,3)
 *   ----
 *   the expected answer, up to an empty line
 *
 * D1. Everything but the answers is kept as it is written, so that a file rewritten with the same answers is the same
 *     file, byte for byte.
 * D2. An argument that its command does not take is an error, never ignored.
 */

/** Runs one command and returns its answer: lines without an empty one among them. */
export type Handler = (args: Args) => string;

const SEPARATOR = '----';

/** The text with the answers that `handler` gives now: equal to `text` when all are as expected. */
export function answered(text: string, handler: Handler): string {
  const lines = text.split('\n');
  const out: string[] = [];
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] ?? '';
    out.push(line);
    if (line.trim() === '' || line.startsWith('#')) continue;
    if (lines[i + 1] !== SEPARATOR) throw new Error(`line ${i + 1}: '${line}' is not followed by '${SEPARATOR}'`);
    out.push(SEPARATOR, ...answer(line, i + 1, handler));
    i++;
    while (i + 1 < lines.length && lines[i + 1] !== '') i++;
  }
  return out.join('\n');
}

function answer(line: string, number: number, handler: Handler): string[] {
  const args = new Args(line);
  let text: string;
  try {
    text = handler(args);
    args.finish();
  } catch (error) {
    throw new Error(`line ${number}: '${line}': ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
  const lines = text === '' ? ['ok'] : text.split('\n');
  if (lines.includes('')) throw new Error(`line ${number}: the answer has an empty line`);
  return lines;
}

/** The words and named values of one command, each to be taken by it (D2). */
export class Args {
  readonly command: string;
  readonly #words: string[] = [];
  readonly #named = new Map<string, string>();

  constructor(line: string) {
    const [command = '', ...rest] = line.match(/(?:\([^)]*\)|"[^"]*"|[^\s("])+/g) ?? [];
    this.command = command;
    for (const token of rest) {
      const at = token.indexOf('=');
      if (at === -1) this.#words.push(token);
      else this.#named.set(token.slice(0, at), token.slice(at + 1));
    }
  }

  /** The next word. */
  word(): string {
    const word = this.#words.shift();
    if (word === undefined) throw new Error('a word is missing');
    return word;
  }

  /** All words that are left. */
  words(): string[] {
    return this.#words.splice(0);
  }

  /** Whether the next word is this one; it is taken then. */
  flag(name: string): boolean {
    const at = this.#words.indexOf(name);
    if (at !== -1) this.#words.splice(at, 1);
    return at !== -1;
  }

  text(name: string): string | undefined {
    const value = this.#named.get(name);
    this.#named.delete(name);
    return value?.replace(/^"(.*)"$/, '$1');
  }

  number(name: string): number | undefined {
    const text = this.text(name);
    return text === undefined ? undefined : toNumber(text);
  }

  boolean(name: string): boolean | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    if (text !== 'true' && text !== 'false') throw new Error(`${name} is true or false, not '${text}'`);
    return text === 'true';
  }

  /** `(1,2,3)`, or a single value. */
  list(name: string): string[] | undefined {
    const text = this.text(name);
    if (text === undefined) return undefined;
    const inner = text.replace(/^\((.*)\)$/, '$1').trim();
    return inner === '' ? [] : inner.split(/\s*,\s*/);
  }

  numbers(name: string): number[] | undefined {
    return this.list(name)?.map(toNumber);
  }

  finish(): void {
    const left = [...this.#words, ...this.#named.keys()];
    if (left.length > 0) throw new Error(`${this.command} takes no ${left.join(', ')}`);
  }
}

export function toNumber(text: string): number {
  if (!/^\d+$/.test(text)) throw new Error(`'${text}' is not a number`);
  return Number(text);
}
