/**
 * Encoders and decoders made from declarations. A value becomes lists, numbers, text and bytes, which the packer
 * writes. A decoder takes the same from the unpacker, which has checked every count against the available bytes.
 *
 * SC1. A decoder returns a value of the declared type, within the declared bounds, or throws `MalformedMessage`.
 * SC2. An *open* decoder skips fields behind those that it knows, in every struct and variant. A *closed* decoder
 *      refuses them. Both fill in fields that were added later according to the declaration.
 * SC3. Words, tags and positions are never reused: what an earlier release wrote keeps its meaning.
 * SC4. Trailing fields with their `absent` value are not written, so a message has the oldest form that can express it.
 * SC5. A decoder allocates nothing of an announced size: lists are read from lists that exist already.
 */
import { assert } from '@remora/base';
import { compileDecoder, compileEncoder, type Interpreter } from './compile.ts';
import { decoder, type Mode } from './decode.ts';
import { encoder, fieldsEncoder } from './encode.ts';
import type { Kind } from './shape.ts';

export type { Mode } from './decode.ts';

export interface Codec<T> {
  encode(value: T): unknown;
  /** SC1. */
  decode(raw: unknown): T;
}

/** For calls, heartbeats and answers: an older reader skips what it does not know (SC2). */
export function openCodec<T>(kind: Kind<T>): Codec<T> {
  return codecOf(kind, 'open');
}

/** For log entries, commands, stored rows and snapshots: skipping a part of these would change their effect (SC2). */
export function closedCodec<T>(kind: Kind<T>): Codec<T> {
  return codecOf(kind, 'closed');
}

/** A codec is compiled after this many uses. Most messages of a command-line program never are. */
const USES_UNTIL_COMPILED = 100;

/** A codec starts as closures, and is compiled once it is used often. `compiled` false: never. */
export function codecOf<T>(kind: Kind<T>, mode: Mode, { compiled = true } = {}): Codec<T> {
  const [encode, decode] = [encoder(kind), decoder(kind, mode)];
  const slow = { encode, decode } as unknown as Codec<T>;
  return compiled ? compiledLater(kind, mode, slow) : slow;
}

function compiledLater<T>(kind: Kind<T>, mode: Mode, slow: Codec<T>): Codec<T> {
  let [encodes, decodes] = [0, 0];
  let encode = slow.encode;
  let decode = slow.decode;
  return {
    encode(value) {
      if (encodes < USES_UNTIL_COMPILED && ++encodes === USES_UNTIL_COMPILED) {
        encode = (compileEncoder(kind, interpreter) as Codec<T>['encode'] | undefined) ?? slow.encode;
      }
      return encode(value);
    },
    decode(raw) {
      if (decodes < USES_UNTIL_COMPILED && ++decodes === USES_UNTIL_COMPILED) {
        decode = (compileDecoder(kind, mode, interpreter) as Codec<T>['decode'] | undefined) ?? slow.decode;
      }
      try {
        return decode(raw);
      } catch (error) {
        if (decode === slow.decode) throw error;
        return slow.decode(raw); // This decoder explains the error.
      }
    },
  };
}

/** The fallback of compiled code. */
export const interpreter: Interpreter = {
  encoder: (kind) => encoder(kind),
  decoder: (kind, mode) => decoder(kind, mode),
  addedNeeded: (fields) => {
    const { needed, least } = fieldsEncoder(fields);
    return (value) => needed(value) - least;
  },
};

/** The fields of a struct without their list, for rows, whose list begins with a version (codec/stored.ts). */
export interface FieldsCodec<T> {
  /** All fields, and how many of them are needed: the others have their `absent` values. */
  encode(value: T): { readonly fields: readonly unknown[]; readonly needed: number };
  decode(fields: readonly unknown[]): T;
}

/** Closed, like all rows. */
export function fieldsCodec<T>({ shape }: Kind<T>): FieldsCodec<T> {
  assert(shape.is === 'struct', 'the fields of a struct');
  const { writeAll, needed } = fieldsEncoder(shape.fields);
  const decode = decoder({ shape }, 'closed') as (fields: readonly unknown[]) => T;
  return {
    encode(value) {
      const fields: unknown[] = [];
      writeAll(value, fields);
      return { fields, needed: needed(value) };
    },
    decode,
  };
}
