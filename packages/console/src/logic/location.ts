/**
 * Addresses within the console: `/console/locks?namespace=default&name=orders%2F42`.
 *
 * Names of locks and keys are in the query and not in the path, because browsers remove segments such as `..` from
 * paths. Every byte can be percent-encoded, so names need not be UTF-8.
 */
import { type JsonBytes, percentDecoded, percentEncoded } from './bytes.ts';

const BASE = '/console/';

export interface Place {
  /** The page: `locks`. Empty: the first one. */
  readonly page: string;
  readonly query: Query;
}

export type Query = ReadonlyMap<string, JsonBytes>;

export function placeOf(pathname: string, search: string): Place {
  const path = pathname.startsWith(BASE) ? pathname.slice(BASE.length) : '';
  return { page: path.replace(/\/+$/, ''), query: queryOf(search) };
}

/** Drops what is not decodable: a link that was cut still opens its page. */
export function queryOf(search: string): Query {
  const query = new Map<string, JsonBytes>();
  for (const pair of search.replace(/^\?/, '').split('&')) {
    const at = pair.indexOf('=');
    const name = percentDecoded(at < 0 ? pair : pair.slice(0, at));
    const value = percentDecoded(at < 0 ? '' : pair.slice(at + 1).replaceAll('+', ' '));
    if (typeof name === 'string' && name !== '' && value !== undefined) query.set(name, value);
  }
  return query;
}

export type Parameters = Readonly<Record<string, JsonBytes | number | undefined>>;

/** The address of a page. Parameters that are undefined or empty are left out. */
export function addressOf(page: string, parameters: Parameters = {}): string {
  return `${BASE}${page}${searchOf(parameters)}`;
}

export function searchOf(parameters: Parameters): string {
  const pairs = Object.entries(parameters).flatMap(([name, value]) => {
    if (value === undefined || value === '') return [];
    return [`${name}=${percentEncoded(typeof value === 'number' ? String(value) : value)}`];
  });
  return pairs.length === 0 ? '' : `?${pairs.join('&')}`;
}

export function textOf(query: Query, name: string): string {
  const value = query.get(name);
  return typeof value === 'string' ? value : '';
}

export function numberOf(query: Query, name: string): number | undefined {
  const text = textOf(query, name);
  return /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
