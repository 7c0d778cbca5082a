/**
 * How objects of the SDK look in JSON and in `console.log`.
 *
 * PN1. Bytes are text if they are UTF-8, otherwise `{ base64 }`. Ids of 64 bits are text in hexadecimal, as the command
 *      line and the HTTP API write them. Both are so at every depth, so `JSON.stringify` never throws.
 * PN2. The fields themselves keep their types: ids stay `bigint` and compare with `===`, bytes stay bytes.
 */
import { jsonBytes } from '@remora/base';

/** The symbol of `util.inspect.custom`. */
export const INSPECT = Symbol.for('nodejs.util.inspect.custom');

/** How deep results are nested at most. */
const DEPTH_MAX = 16;

type Inspect = (value: unknown, options: object) => string;

/** An object that prints what `toJSON` returns. */
export abstract class Printable {
  /** What `JSON.stringify` writes. */
  abstract toJSON(): object;

  /** @internal What `console.log` prints, behind the name of the class. */
  [INSPECT](depth: number, options: object, inspect: Inspect): string {
    const { name } = this.constructor;
    const prefix = name === Result.name ? '' : `${name} `;
    return depth < 0 ? `[${name}]` : prefix + inspect(this.toJSON(), options);
  }
}

/** The prototype of results. */
class Result extends Printable {
  toJSON(): object {
    return Object.fromEntries(Object.entries(this).map(([name, value]) => [name, jsonOf(value)]));
  }
}

/** PN1. A copy of a result of plain data that prints as text, also in its parts. */
export function printable<T>(value: T, depth = 0): T {
  if (typeof value !== 'object' || value === null || value instanceof Uint8Array || depth > DEPTH_MAX) return value;
  if (Array.isArray(value)) return value.map((item) => printable(item, depth + 1)) as T;
  if (value instanceof Printable) return value;
  const result: Record<string, unknown> = Object.create(Result.prototype);
  for (const [name, part] of Object.entries(value)) result[name] = printable(part, depth + 1);
  return result as T;
}

/** PN1. An id in hexadecimal: 64 bits without a sign, although etcd clients may choose negative ids. */
export function idText(id: bigint): string {
  return BigInt.asUintN(64, id).toString(16);
}

function jsonOf(value: unknown): unknown {
  if (typeof value === 'bigint') return idText(value);
  if (value instanceof Uint8Array) return jsonBytes(value);
  return Array.isArray(value) ? value.map(jsonOf) : value;
}
