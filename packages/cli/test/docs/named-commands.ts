/**
 * Finds the commands that texts name, and resolves them against the command line as it is.
 *
 * NC1. A command is named by a line of a code block, or by inline code, that begins with `remora`, `npx remora`, `npm
 *      run` or `pnpm`; and by the first cells of the table of commands below `remora admin`, which leave that out.
 * NC2. Words in capitals, in angle brackets or with an ellipsis stand for whatever the reader puts there; `[options]`
 *      stands for any options.
 * NC3. Each word that names a command has to be one, each flag one of its own, and there are no more arguments than it
 *      takes.
 */
import type { Command } from 'commander';

export interface NamedCommand {
  readonly file: string;
  readonly line: number;
  readonly text: string;
  /** Where the text leaves that out: the command that it may be below. */
  readonly parent?: string;
}

const BEGINS = /^(?:\$ )?(?:[A-Z_]+=\S* )*(remora|npx remora|npm (?:run|start|test)|pnpm)(?= \S|$)/;
const SHELL = / (?:\|\|?|&&|;) /;

/** All that a page of Markdown names (NC1). */
export function namedIn(file: string, page: string): readonly NamedCommand[] {
  const found: NamedCommand[] = [];
  let isCode = false;
  let continued: NamedCommand | undefined;
  for (const [i, raw] of page.split('\n').entries()) {
    const line = raw.trim();
    if (line.startsWith('```')) {
      isCode = !isCode;
      continue;
    }
    const texts = isCode ? [`${continued?.text ?? ''}${line}`] : inlineCode(line);
    for (const text of texts) {
      const named = { file, line: i + 1, text: text.replace(/\\$/, '') };
      continued = isCode && text.endsWith('\\') ? named : undefined;
      if (continued !== undefined) continue;
      for (const part of partsOf(named.text)) if (BEGINS.test(part)) found.push({ ...named, text: part });
    }
  }
  return [...found, ...adminTable(file, page)];
}

function inlineCode(line: string): readonly string[] {
  return [...line.matchAll(/`([^`]+)`/g)].map(([, text = '']) => text);
}

/**
 * `nodes drain NODE`, `undrain`: each cell begins with a command below `remora admin`; what follows may leave its
 * parent out.
 */
function adminTable(file: string, page: string): readonly NamedCommand[] {
  const lines = page.split('\n');
  const from = lines.findIndex((line) => /^## .*`remora admin`/.test(line));
  if (from < 0) return [];
  const found: NamedCommand[] = [];
  let isTable = false;
  for (let i = from + 1; i < lines.length && !lines[i]?.startsWith('## '); i++) {
    const line = lines[i] ?? '';
    isTable = line.startsWith('|') && (isTable || line.startsWith('| Command |'));
    const [, cell = ''] = isTable ? line.split('|') : [];
    const [first, ...more] = inlineCode(cell);
    if (first === undefined) continue;
    const group = first.split(' ')[0] ?? '';
    for (const text of [first, ...more]) found.push({ file, line: i + 1, text: `remora admin ${text}`, parent: group });
  }
  return found;
}

/** What a line of a shell runs, one after the other or into each other. */
export function partsOf(line: string): readonly string[] {
  return line.replace(/^\$ /, '').split(SHELL);
}

/** What is wrong with it; undefined when there is such a command. */
export function faultOf(
  { text, parent }: Pick<NamedCommand, 'text' | 'parent'>,
  program: Command,
  scripts: ReadonlySet<string>,
): string | undefined {
  const fault = faultOfText(text, program, scripts);
  if (fault === undefined || parent === undefined) return fault;
  const below = faultOfText(text.replace('admin ', `admin ${parent} `), program, scripts);
  return below === undefined ? undefined : fault;
}

function faultOfText(text: string, program: Command, scripts: ReadonlySet<string>): string | undefined {
  const words = wordsOf(text);
  const [head, second = ''] = words;
  if (head === 'npx') return resolve(program, words.slice(2));
  if (head === 'remora') return resolve(program, words.slice(1));
  const script = second === 'run' ? (words[2] ?? '') : second;
  const isKnown = scripts.has(script) || script === 'install' || isPlaceholder(script);
  return isKnown ? undefined : `there is no script ${script}`;
}

/** Up to where the shell takes over: comments, what `lock run` is to run. */
function wordsOf(text: string): readonly string[] {
  const plain = text
    .replace(BEGINS, '$1')
    .replaceAll(' [options]', '')
    .replaceAll(/\[([^\]]*)\]/g, '$1');
  const words = plain.match(/'[^']*'|"[^"]*"|\S+/g) ?? [];
  const end = words.findIndex((word) => ['>', '&', '#', '--', '…'].includes(word));
  return words.slice(0, end < 0 ? undefined : end);
}

/** NC2. */
function isPlaceholder(word: string): boolean {
  return word === 'x' || /^[A-Z][A-Z0-9_-]*$/.test(word) || /[<…]|\.\.\./.test(word);
}

/** NC3. */
function resolve(program: Command, words: readonly string[]): string | undefined {
  let command = program;
  let values = 0;
  for (let i = 0; i < words.length; i++) {
    const word = words[i] ?? '';
    if (word.startsWith('-') && word.length > 1) {
      const [flag = ''] = word.split('=');
      const option = optionOf(command, flag) ?? optionOf(defaultOf(command), flag);
      if (option === undefined && !['--help', '-h'].includes(flag)) return `${command.name()} has no flag ${flag}`;
      if (option?.required === true && !word.includes('=')) i++;
      else if (option?.optional === true && !word.includes('=') && !(words[i + 1] ?? '-').startsWith('-')) i++;
      continue;
    }
    const child = command.commands.find((each) => each.name() === word || each.aliases().includes(word));
    if (child !== undefined && values === 0) {
      command = child;
      continue;
    }
    if (command.commands.length > 0 && values === 0 && command.registeredArguments.length === 0) {
      return isPlaceholder(word) ? undefined : `${command.name()} has no command ${word}`;
    }
    values++;
  }
  const takes = command.registeredArguments;
  const most = takes.some(({ variadic }) => variadic) ? Number.POSITIVE_INFINITY : takes.length;
  return values > most ? `${command.name()} takes ${most} arguments, not ${values}` : undefined;
}

/** What runs where a group is named alone; the library does not tell. */
function defaultOf(group: Command): Command | null {
  const { _defaultCommandName: name } = group as unknown as { readonly _defaultCommandName?: string | null };
  return group.commands.find((child) => child.name() === name) ?? null;
}

function optionOf(command: Command | null, flag: string): Command['options'][number] | undefined {
  for (let at = command; at !== null; at = at.parent) {
    const option = at.options.find(({ long, short }) => long === flag || short === flag);
    if (option !== undefined) return option;
  }
  return undefined;
}
