import { readFileSync } from 'node:fs';
import type { OptionsFile } from '@remora/base';
import { type Document, isMap, isScalar, LineCounter, parseDocument } from 'yaml';
import { CommandError } from './exit-codes.ts';

/**
 * A file with every option and a paragraph about it is shorter. A larger file is something else, and the YAML parser
 * takes seconds over nonsense of four times this length.
 */
const CONFIG_LENGTH_MAX = 16 * 1024;
const NESTING_MAX = 200;

/**
 * Reads a configuration file: YAML, which includes JSON. Its keys are the flags without their dashes.
 * @throws {CommandError} if the file is missing, is not YAML or is not a map.
 */
export function readConfigFile(path: string): OptionsFile {
  return parseConfig(path, readText(path));
}

export function parseConfig(path: string, text: string): OptionsFile {
  const lineCounter = new LineCounter();
  if (text.length > CONFIG_LENGTH_MAX) {
    throw new CommandError(
      'usage',
      `${path}: has ${text.length} characters; a configuration file has at most ${CONFIG_LENGTH_MAX}`,
    );
  }
  if (nestsTooDeep(text)) throw new CommandError('usage', `${path}: is nested too deeply for a configuration file`);
  const document = readable(path, () => parseDocument(text, { lineCounter, prettyErrors: true }));
  const [error] = document.errors;
  if (error !== undefined) throw new CommandError('usage', `${path}: ${error.message.trimEnd()}`);
  if (document.contents === null) return { path, values: {} };
  if (!isMap(document.contents)) {
    throw new CommandError('usage', `${path}: expected a map of options, such as "log-level: info"`);
  }
  const lines: Record<string, number> = {};
  for (const { key } of document.contents.items) {
    if (isScalar(key) && key.range) lines[String(key.value)] = lineCounter.linePos(key.range[0]).line;
  }
  return { path, values: valuesOf(path, document), lines };
}

/** Without aliases: their expansion is unbounded, and may contain itself. */
function valuesOf(path: string, document: Document): Record<string, unknown> {
  return readable(path, () => document.toJS({ maxAliasCount: 0 }) as Record<string, unknown>);
}

/**
 * Checked before parsing: the parser recurses into each level, and if the stack overflows in one of its regular
 * expressions, the process dies silently. Options are at most a list in a map; every level needs a bracket, or a word
 * that ends with the character that announces a value.
 */
function nestsTooDeep(text: string): boolean {
  let [brackets, announced] = [0, 0];
  for (const word of text.split(/\s+/)) {
    for (const char of word) if (char === '[' || char === '{') brackets++;
    announced = /[-?:]$/.test(word) ? announced + 1 : 0;
    if (brackets > NESTING_MAX || announced > NESTING_MAX) return true;
  }
  return false;
}

/** The parser throws some of its errors. */
function readable<T>(path: string, parse: () => T): T {
  try {
    return parse();
  } catch (cause) {
    throw new CommandError('usage', `${path}: cannot be read: ${String(cause)}`, { cause });
  }
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new CommandError('usage', `cannot read the configuration file: ${message}`, { cause });
  }
}
