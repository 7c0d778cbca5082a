import { readFileSync } from 'node:fs';
import type { OptionsFile } from '@remora/base';
import { isMap, isScalar, LineCounter, parseDocument } from 'yaml';
import { CommandError } from './exit-codes.ts';

/**
 * Reads a configuration file: YAML, and so JSON too. Its keys are the flags without their dashes.
 * @throws {CommandError} when the file is missing, is not YAML or is not a map.
 */
export function readConfigFile(path: string): OptionsFile {
  return parseConfig(path, readText(path));
}

export function parseConfig(path: string, text: string): OptionsFile {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { lineCounter, prettyErrors: true });
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
  return { path, values: document.toJS() as Record<string, unknown>, lines };
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : String(cause);
    throw new CommandError('usage', `cannot read the configuration file: ${message}`, { cause });
  }
}
