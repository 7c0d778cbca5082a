/** The bounds of ranges, for programs; `routingKeyText` is for people. */
import { jsonBytes } from '@remora/base';
import { KV_SPACE, LEASE_SPACE, LOCK_SPACE, routingKeyText } from '@remora/protocol';

const SPACES: ReadonlyMap<number, string> = new Map([
  [LEASE_SPACE, 'lease'],
  [LOCK_SPACE, 'lock'],
  [KV_SPACE, 'key'],
]);

interface JsonBound {
  readonly space: string;
  readonly key: unknown;
  /** The form that `--key` accepts. */
  readonly text: string;
}

/** Null: no bound. */
export function jsonBound(bound: Uint8Array): JsonBound | null {
  const [first] = bound;
  if (first === undefined) return null;
  const space = SPACES.get(first) ?? String(first);
  return { space, key: jsonBytes(bound.subarray(1)), text: routingKeyText(bound) };
}
