/** The static table: RFC 7541 appendix A. Indices begin at 1. */
import { type DecodedField, decodedField } from './header-field.ts';

const ENTRIES: readonly (readonly [name: string, value?: string])[] = [
  [':authority'],
  [':method', 'GET'],
  [':method', 'POST'],
  [':path', '/'],
  [':path', '/index.html'],
  [':scheme', 'http'],
  [':scheme', 'https'],
  [':status', '200'],
  [':status', '204'],
  [':status', '206'],
  [':status', '304'],
  [':status', '400'],
  [':status', '404'],
  [':status', '500'],
  ['accept-charset'],
  ['accept-encoding', 'gzip, deflate'],
  ['accept-language'],
  ['accept-ranges'],
  ['accept'],
  ['access-control-allow-origin'],
  ['age'],
  ['allow'],
  ['authorization'],
  ['cache-control'],
  ['content-disposition'],
  ['content-encoding'],
  ['content-language'],
  ['content-length'],
  ['content-location'],
  ['content-range'],
  ['content-type'],
  ['cookie'],
  ['date'],
  ['etag'],
  ['expect'],
  ['expires'],
  ['from'],
  ['host'],
  ['if-match'],
  ['if-modified-since'],
  ['if-none-match'],
  ['if-range'],
  ['if-unmodified-since'],
  ['last-modified'],
  ['link'],
  ['location'],
  ['max-forwards'],
  ['proxy-authenticate'],
  ['proxy-authorization'],
  ['range'],
  ['referer'],
  ['refresh'],
  ['retry-after'],
  ['server'],
  ['set-cookie'],
  ['strict-transport-security'],
  ['transfer-encoding'],
  ['user-agent'],
  ['vary'],
  ['via'],
  ['www-authenticate'],
];

export const STATIC_FIELDS: readonly DecodedField[] = ENTRIES.map(([name, value = '']) => decodedField(name, value));
export const STATIC_COUNT = STATIC_FIELDS.length;

const BY_NAME = new Map<string, number>();
const BY_FIELD = new Map<string, Map<string, number>>();
STATIC_FIELDS.forEach(({ name, value }, at) => {
  if (!BY_NAME.has(name)) BY_NAME.set(name, at + 1);
  const values = BY_FIELD.get(name) ?? new Map<string, number>();
  BY_FIELD.set(name, values.set(value, at + 1));
});

/** The index of the first entry with this name; 0 if there is none. */
export function staticNameIndex(name: string): number {
  return BY_NAME.get(name) ?? 0;
}

/** The index of the entry with this name and value; 0 if there is none. */
export function staticFieldIndex(name: string, value: string): number {
  return BY_FIELD.get(name)?.get(value) ?? 0;
}
