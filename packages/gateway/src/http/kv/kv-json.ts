/** The JSON forms of keys, and the cursors of their lists. */
import { type Bytes, compareBytes, jsonBytes, prefixEnd, utf8Text } from '@remora/base';
import type { KeyRange, KeyValue } from '@remora/protocol';
import { invalid } from '../fields.ts';
import type { KeyJson, KeyValueJson } from '../json/kv.ts';
import { percentEncoded } from '../targets.ts';

export function keyJson({ key, createRevision, modRevision, version, lease }: KeyValue): KeyJson {
  return {
    ...{ key: jsonBytes(key), createRevision, modRevision, version },
    ...(lease === 0n ? {} : { lease: leaseText(lease) }),
  };
}

export function keyValueJson(kv: KeyValue): KeyValueJson {
  return { ...keyJson(kv), value: jsonBytes(kv.value), valueBytes: kv.value.length };
}

/** In hexadecimal, as in the id of a session. */
function leaseText(lease: bigint): string {
  return BigInt.asUintN(64, lease).toString(16);
}

export function parseLease(text: string | undefined): bigint {
  if (text === undefined) return 0n;
  const lease = /^[0-9a-f]{1,16}$/.test(text) ? BigInt.asIntN(64, BigInt(`0x${text}`)) : 0n;
  if (lease !== 0n) return lease;
  throw invalid('lease: expected a lease in hexadecimal: the part of a session id in front of the dot');
}

/** The keys that begin with a prefix; an empty one selects all keys. */
export function keysOf(prefix: Bytes): Required<KeyRange> {
  // The lowest key there is; a permission on all keys begins with it, too.
  if (prefix.length === 0) return { key: Buffer.of(0), end: Buffer.alloc(0) };
  return { key: prefix, end: prefixEnd(prefix) };
}

export function isBefore(key: Bytes, end: Bytes): boolean {
  return end.length === 0 || compareBytes(key, end) < 0;
}

/** Where a list goes on, and the revision at which all of its pages are read; 0: the newest. */
export interface Place {
  readonly from: Bytes;
  readonly revision: number;
}

/** The value of `after` for the next page. */
export function cursorOf({ from, revision }: Place): string {
  return `${revision}.${percentEncoded(from)}`;
}

const CURSOR = /^(\d{1,16})\.$/;
const DOT = 0x2e;

/** The place where a list begins. `after`: the cursor that the page before returned. */
export function placeOf(
  { key, end }: Required<KeyRange>,
  { after, revision }: { readonly after: Bytes | undefined; readonly revision: number },
): Place {
  if (after === undefined) return { from: key, revision };
  const at = after.indexOf(DOT) + 1;
  const [, digits = ''] = CURSOR.exec(utf8Text(after.subarray(0, at)) ?? '') ?? [];
  const from = after.subarray(at);
  const place = { from, revision: Number(digits) };
  if (digits === '' || !Number.isSafeInteger(place.revision) || compareBytes(from, key) < 0 || !isBefore(from, end)) {
    throw invalid('after: expected `next` of the previous page of the same list');
  }
  if (revision === 0 || revision === place.revision) return place;
  throw invalid('revision: all pages of a list are read at the revision of the first one; leave it out with `after`');
}
