/** Places in the order of all keys, as the HTTP API writes them: `key:orders/42`, `lock:orders/42`. */
import { fromBytes, type JsonBytes } from './bytes.ts';

/** What is typed: a place in one of these forms, or else a plain key. */
export function routingKey(typed: string): string {
  if (typed === '-' || /^((key|lease|raw|lock):|lock@[^:]*:)/.test(typed)) return typed;
  return `key:${typed.replaceAll('\\', '\\\\')}`;
}

/** The start of a span for people. */
export function startText(place: string): string {
  return place === '-' || place === '' ? 'the first key' : placeText(place);
}

/** The end of a span for people. */
export function endText(place: string): string {
  return place === '-' || place === '' ? 'the last key' : placeText(place);
}

/** The forms that are bounds and name nothing. */
function placeText(place: string): string {
  if (place === 'key:') return 'the first plain key';
  if (place === 'lock:' || place === 'lock@:') return 'the first lock';
  if (place === 'lease:') return 'the first session';
  const namespace = /^lock@([^:]*):$/.exec(place)?.[1];
  return namespace === undefined ? place : `the locks of namespace ${namespace}`;
}

/** What one place names, for a link to it. */
export type Named =
  | { readonly kind: 'key'; readonly key: JsonBytes }
  | { readonly kind: 'lock'; readonly namespace: string; readonly name: JsonBytes };

/** The key or the lock that begins at a place. Undefined: it is a session, or a bound that names nothing. */
export function namedAt(place: string): Named | undefined {
  const [, form, namespace, rest = ''] = /^(key|lock)(@[^:]*)?:(.+)$/su.exec(place) ?? [];
  const name = unescaped(rest);
  if (name === undefined) return undefined;
  if (form === 'key' && namespace === undefined) return { kind: 'key', key: name };
  if (form !== 'lock') return undefined;
  const space = namespace === undefined ? 'default' : unescaped(namespace.slice(1));
  return typeof space === 'string' ? { kind: 'lock', namespace: space, name } : undefined;
}

/** What a span is for people: one key, one lock, one session, or all from one place to another. */
export function spanText(from: string, to: string): string {
  return isOne(from, to) ? placeText(from) : `${startText(from)} to ${endText(to)}`;
}

/** Whether a span has one key, lock or session and no other. The next place is that of the same name and a zero. */
export function isOne(from: string, to: string): boolean {
  const lease = /^lease:([0-9a-f]{16})$/.exec(from)?.[1];
  if (lease !== undefined) return to === `lease:${(BigInt(`0x${lease}`) + 1n).toString(16).padStart(16, '0')}`;
  return namedAt(from) !== undefined && to === `${from}\\x00`;
}

/** Undefined: a backslash is not followed by `xNN`. */
function unescaped(text: string): JsonBytes | undefined {
  if (/\\(?!x[0-9a-fA-F]{2})/.test(text)) return undefined;
  const encoder = new TextEncoder();
  const bytes = [...text.matchAll(/\\x(..)|[^\\]+/gsu)].flatMap(([part, code]) =>
    code === undefined ? [...encoder.encode(part)] : [Number.parseInt(code, 16)],
  );
  return fromBytes(Uint8Array.from(bytes));
}
