import { assert, type Bytes, InvariantError, ServiceError } from '@remora/base';
import { type FieldsCodec, fieldsCodec } from '../../schema/codec.ts';
import { bool, field, list, struct, uint } from '../../schema/kinds.ts';
import type { Kind } from '../../schema/shape.ts';
import { asFields, invalid } from './check.ts';
import { packRow } from './library-pack.ts';
import { UnpackError, unpack } from './unpack.ts';

/**
 * A node's stored rows: `[format, field…]`, checked field by field when they are read, like messages.
 *
 * D1. A row that cannot be read is a broken invariant, not a wrong request: `InvariantError`, which stops the node.
 * D2. A row is written in the lowest version that can express it. So earlier programs read every row without new
 *     contents.
 */
export interface StoredFormat {
  /** The name in the error message. */
  readonly what: string;
  /** The version of the format: the first field. A row of another version is not read. */
  readonly version: number;
  /** The number of fields after the version. */
  readonly fields: number;
}

/** A kind of row. */
export interface Row<T> {
  encode(value: T): Buffer;
  /** D1. */
  decode(bytes: Bytes): T;
}

/**
 * The rows of a struct. `versions` lists how many of its fields each version has, in their order; fields of later
 * versions are declared with `added`, and have their `absent` value in rows of earlier ones.
 */
export function storedRow<T>(what: string, kind: Kind<T>, versions: Readonly<Record<number, number>>): Row<T> {
  const codec: FieldsCodec<T> = fieldsCodec(kind);
  const formats = Object.entries(versions).map(([version, fields]) => ({ what, version: Number(version), fields }));
  const [first, ...later] = formats;
  assert(first !== undefined, 'a row has a version');
  return {
    encode(value) {
      const { fields, needed } = codec.encode(value);
      const format = formats.find((one) => one.fields >= needed);
      assert(format !== undefined, `a version of ${what} has all fields`);
      return encodeStored(format, fields.slice(0, format.fields));
    },
    decode: (bytes) => decodeStored([first, ...later], bytes, codec.decode),
  };
}

export function encodeStored({ version }: StoredFormat, fields: readonly unknown[]): Buffer {
  return packRow([version, ...fields]);
}

/**
 * The inverse, for one readable format or several; `decode` checks the fields with the functions of `check.ts` (D1).
 */
export function decodeStored<T>(
  formats: StoredFormat | readonly [StoredFormat, ...StoredFormat[]],
  bytes: Bytes,
  decode: (fields: readonly unknown[]) => T,
): T {
  const known: readonly StoredFormat[] = 'what' in formats ? [formats] : formats;
  const what = known[0]?.what ?? 'a row';
  try {
    const raw = unpack(bytes, 0);
    if (!Array.isArray(raw)) throw invalid(what);
    const [found] = raw;
    const format = known.find(({ version }) => version === found);
    if (format === undefined) {
      const versions = known.map(({ version }) => version).join(', ');
      throw invalid(`format ${String(found)}, and this version reads ${versions}`);
    }
    return decode(asFields(raw, 1 + format.fields, what).slice(1));
  } catch (cause) {
    if (!(cause instanceof ServiceError || cause instanceof UnpackError)) throw cause;
    throw new InvariantError(`${what} cannot be read: ${cause.message}`, { cause });
  }
}

/** A Raft group's configuration, in the Raft library's own shape. */
export const ConfFields = struct('configuration', {
  voters: field(list(uint), 'The voters.'),
  votersOutgoing: field(list(uint), 'The outgoing voters of a joint configuration.'),
  learners: field(list(uint), 'The learners.'),
  learnersNext: field(list(uint), 'Voters that become learners when the joint configuration is left.'),
  autoLeave: field(bool, 'The joint configuration is left without an order.'),
});
