import { type Bytes, utf8Text } from '@remora/base';
import { invalid } from './fields.ts';

const NAME_SHOWN_MAX = 64;

/** The segments of a request's path, and its query, percent-decoded. Any byte can be percent-encoded. */
export interface Target {
  readonly segments: readonly Bytes[];
  readonly query: ReadonlyMap<string, Bytes>;
}

export function parseTarget(target: string): Target {
  const [path = '', ...rest] = target.split('?');
  const query = new Map<string, Bytes>();
  for (const pair of rest.join('?').split('&')) {
    if (pair === '') continue;
    const at = pair.indexOf('=');
    const [name, value] = at < 0 ? [pair, ''] : [pair.slice(0, at), pair.slice(at + 1)];
    const key = text(decoded(name), 'a name in the query');
    if (query.has(key)) throw invalid(`the query has ${key} twice`);
    // Forms encode a space as `+`.
    query.set(key, decoded(value.replaceAll('+', '%20')));
  }
  return { segments: path.split('/').slice(1).map(decoded), query };
}

/** Returns a segment or a value as text; `what` names it in messages. */
export function text(bytes: Bytes, what: string): string {
  const read = utf8Text(bytes);
  if (read === undefined) throw invalid(`${what} must be percent-encoded UTF-8`);
  return read;
}

export function onlyThese(query: Target['query'], names: readonly string[]): void {
  const unknown = [...query.keys()].find((name) => !names.includes(name));
  if (unknown === undefined) return;
  const there = names.length === 0 ? 'this call takes none' : `this call takes ${names.join(', ')}`;
  throw invalid(`unknown query parameter ${unknown.slice(0, NAME_SHOWN_MAX)}; ${there}`);
}

export function wholeNumber(query: Target['query'], name: string, otherwise: number): number {
  const value = query.get(name);
  if (value === undefined) return otherwise;
  const number = text(value, name);
  if (!/^\d{1,15}$/.test(number))
    throw invalid(`${name} must be a whole number, not ${number.slice(0, NAME_SHOWN_MAX)}`);
  return Number(number);
}

/** The same, within bounds. */
export function wholeNumberIn(
  query: Target['query'],
  name: string,
  { otherwise, min, max }: { readonly otherwise: number; readonly min: number; readonly max: number },
): number {
  const number = wholeNumber(query, name, otherwise);
  if (number >= min && number <= max) return number;
  throw invalid(`${name} must be a whole number from ${min} to ${max}, not ${number}`);
}

/** Encodes bytes as a segment of a path or a value in a query. */
export function percentEncoded(bytes: Bytes): string {
  return Array.from(bytes, (byte) => {
    const char = String.fromCharCode(byte);
    return /[A-Za-z0-9._~-]/.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`;
  }).join('');
}

function decoded(encoded: string): Bytes {
  if (/%(?![0-9A-Fa-f]{2})/.test(encoded)) throw invalid('a % in a URL must be followed by two hexadecimal digits');
  const bytes = encoded.replace(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
  return Buffer.from(bytes, 'latin1');
}
