/** The forms of a value: text, JSON, hexadecimal. */
import { fromBytes, type JsonBytes, toBytes } from './bytes.ts';
import { parseHex } from './hex.ts';

export type Form = 'text' | 'json' | 'hex';

/** JSON of a larger value is not indented: the tab would stand still. */
const JSON_MAX = 2 * 1024 * 1024;

/** The form that suits a value best. */
export function formOf(value: JsonBytes): Form {
  if (typeof value !== 'string') return 'hex';
  return indented(value) === undefined ? 'text' : 'json';
}

/** Indented JSON with numbers as they are written; undefined if the text is no object and no array of JSON. */
export function indented(text: string): string | undefined {
  if (text.length > JSON_MAX || !/^\s*[[{]/.test(text)) return undefined;
  try {
    JSON.parse(text);
  } catch {
    return undefined;
  }
  return reindented(text);
}

/** Indents without parsing numbers, which would change large ones, and keeps every key, `__proto__` too. */
function reindented(json: string): string {
  const parts: string[] = [];
  let depth = 0;
  const line = (): string => `\n${'  '.repeat(depth)}`;
  const tokens = json.match(/"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s[\]{},:"]+/gs) ?? [];
  tokens.forEach((token, at) => {
    const isEmpty = (token === '{' && tokens[at + 1] === '}') || (token === '[' && tokens[at + 1] === ']');
    const wasOpened = tokens[at - 1] === '{' || tokens[at - 1] === '[';
    if (token === '{' || token === '[') {
      depth++;
      parts.push(token, isEmpty ? '' : line());
    } else if (token === '}' || token === ']') {
      depth--;
      parts.push(wasOpened ? '' : line(), token);
    } else if (token === ',') parts.push(token, line());
    else parts.push(token === ':' ? ': ' : token);
  });
  return parts.join('');
}

/** What is typed in a form, as a value; a problem if it is not of that form. */
export function parsedValue(form: Form, typed: string): { readonly value: JsonBytes } | { readonly problem: string } {
  if (form === 'text') return { value: typed };
  if (form === 'hex') {
    const bytes = parseHex(typed);
    return bytes === undefined ? { problem: 'Expected pairs of hexadecimal digits.' } : { value: fromBytes(bytes) };
  }
  try {
    JSON.parse(typed);
    return { value: typed };
  } catch (error) {
    return { problem: `Not JSON: ${(error as Error).message}` };
  }
}

/** A value in a form, to edit. */
export function typedValue(form: Form, value: JsonBytes): string {
  if (form !== 'hex') return typeof value === 'string' ? value : '';
  const pairs = Array.from(toBytes(value), (byte) => byte.toString(16).padStart(2, '0'));
  return pairs
    .map((pair, at) => (at % 16 === 15 ? `${pair}\n` : `${pair} `))
    .join('')
    .trimEnd();
}

/** Lines to compare: indented JSON where both are JSON, text, or a dump. */
export function comparable(value: JsonBytes): string {
  if (typeof value === 'string') return indented(value) ?? value;
  return typedValue('hex', value);
}
