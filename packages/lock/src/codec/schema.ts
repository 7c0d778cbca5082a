/**
 * Codecs made of parts: each converts a value into plain data for msgpackr (positional arrays, no field names), checks
 * what it decodes, and describes itself, so that a test can pin the whole wire schema by one hash.
 */
import { ServiceError } from '@remora/base';
import { LEASE_MAX } from '../limits.ts';

export interface Codec<T> {
  /** The layout as text: the input of the schema's hash. */
  readonly schema: string;
  encode(value: T): unknown;
  /** Throws `ServiceError` INVALID_ARGUMENT for anything that `encode` cannot have produced. */
  decode(raw: unknown): T;
  /** For a field that earlier writers of the same version did not have: its value if it is absent. */
  readonly absent?: { readonly value: T };
}

export const int: Codec<number> = scalar('int', (raw): raw is number => Number.isSafeInteger(raw) && Number(raw) >= 0);

export const time: Codec<number> = scalar('time', (raw): raw is number => Number.isFinite(raw) && Number(raw) >= 0);

export const bool: Codec<boolean> = scalar('bool', (raw) => typeof raw === 'boolean');

export const text: Codec<string> = scalar('text', (raw) => typeof raw === 'string');

/** Not copied: copy the bytes to keep them longer than the frame that they came in. */
export const bytes: Codec<Uint8Array> = scalar('bytes', (raw) => raw instanceof Uint8Array);

/** 63 bits. msgpackr decodes small ones as numbers if writers in other languages encoded them so. */
export const lease: Codec<bigint> = {
  schema: 'lease',
  encode: (value) => value,
  decode: (raw) => {
    if (typeof raw === 'bigint' && raw >= 0n && raw <= LEASE_MAX) return raw;
    if (Number.isSafeInteger(raw) && Number(raw) >= 0) return BigInt(Number(raw));
    throw malformed('lease', raw);
  },
};

/** A number that may be absent, which means 0; always present when decoded. */
export const optionalInt: Codec<number> = {
  schema: 'int?',
  encode: (value: number | undefined) => value ?? 0,
  decode: int.decode,
};

/** A field that was added at the end of a struct: absent in earlier messages. */
export function added<T>(codec: Codec<T>, value: NoInfer<T>): Codec<T> {
  return {
    schema: `${codec.schema}+`,
    encode: (present: T | undefined) => codec.encode(present ?? value),
    decode: codec.decode,
    absent: { value },
  };
}

/** The same layout, with a conversion of the decoded value: for fields that an earlier version did not have. */
export function completed<Wire, T extends Wire>(codec: Codec<Wire>, complete: (decoded: Wire) => T): Codec<T> {
  return { schema: codec.schema, encode: codec.encode, decode: (raw) => complete(codec.decode(raw)) };
}

export function literal<T extends string>(values: readonly T[]): Codec<T> {
  return {
    schema: `(${values.join('|')})`,
    encode: (value) => values.indexOf(value),
    decode: (raw) => {
      const value = typeof raw === 'number' ? values[raw] : undefined;
      if (value === undefined) throw malformed(values.join('|'), raw);
      return value;
    },
  };
}

export function optional<T>(codec: Codec<T>): Codec<T | undefined> {
  return {
    schema: `${codec.schema}?`,
    encode: (value) => (value === undefined ? null : codec.encode(value)),
    decode: (raw) => (raw === null || raw === undefined ? undefined : codec.decode(raw)),
  };
}

export function listOf<T>(codec: Codec<T>): Codec<readonly T[]> {
  return {
    schema: `[${codec.schema}]`,
    encode: (values) => values.map((value) => codec.encode(value)),
    decode: (raw) => array('list', raw).map((item) => codec.decode(item)),
  };
}

type Fields<T> = { readonly [K in keyof T]-?: Codec<T[K]> };

/**
 * Fields by position, in the order in which they are named here. A new field goes last: `added`, or with a new version.
 */
export function struct<T extends object>(fields: Fields<T>): Codec<T> {
  const entries = Object.entries(fields) as [keyof T & string, Codec<unknown>][];
  const schema = `{${entries.map(([name, codec]) => `${name}:${codec.schema}`).join(',')}}`;
  const decode = (raw: unknown): T => {
    const values = array(schema, raw);
    if (values.length > entries.length) throw malformed(schema, raw);
    const value: Record<string, unknown> = {};
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i];
      if (entry === undefined) continue;
      const [name, codec] = entry;
      if (i < values.length) value[name] = codec.decode(values[i]);
      else if (codec.absent !== undefined) value[name] = codec.absent.value;
      else throw malformed(schema, raw);
    }
    return value as T;
  };
  return {
    schema,
    encode: (value) => entries.map(([name, codec]) => codec.encode(value[name])),
    decode,
  };
}

type Variants<T extends { readonly type: string }> = {
  readonly [K in T['type']]: Codec<Omit<Extract<T, { readonly type: K }>, 'type'>>;
};

/** A union discriminated by `type`: the variant's number, then its fields. A new variant goes last. */
export function union<T extends { readonly type: string }>(variants: Variants<T>): Codec<T> {
  const types = Object.keys(variants) as T['type'][];
  const codecs = Object.values(variants) as Codec<object>[];
  const schema = types.map((type, i) => `${type}${codecs[i]?.schema ?? ''}`).join('|');
  const numbers = new Map(types.map((type, i) => [type, i]));
  return {
    schema: `<${schema}>`,
    encode: (value) => {
      const number = numbers.get(value.type);
      const codec = number === undefined ? undefined : codecs[number];
      if (codec === undefined) throw malformed('variant', value.type);
      return [number, codec.encode(value)];
    },
    decode: (raw) => {
      const [number, fields] = array('variant', raw);
      const index = typeof number === 'number' ? number : -1;
      const codec = codecs[index];
      if (codec === undefined) throw malformed('variant', number);
      return { type: types[index], ...codec.decode(fields) } as unknown as T;
    },
  };
}

/** A whole message: its version first, then its content. */
export interface MessageCodec<T> {
  readonly schema: string;
  encode(value: T): unknown[];
  decode(raw: unknown): T;
}

export function message<T>(version: number, codec: Codec<T>): MessageCodec<T> {
  return {
    schema: `v${version} ${codec.schema}`,
    encode: (value) => [version, codec.encode(value)],
    decode: (raw) => {
      const [found, content] = array('message', raw);
      if (found !== version) throw malformed(`message of version ${version}`, found);
      return codec.decode(content);
    },
  };
}

function scalar<T>(schema: string, is: (raw: unknown) => raw is T): Codec<T> {
  return {
    schema,
    encode: (value) => value,
    decode: (raw) => {
      if (!is(raw)) throw malformed(schema, raw);
      return raw;
    },
  };
}

function array(what: string, raw: unknown): readonly unknown[] {
  if (!Array.isArray(raw)) throw malformed(what, raw);
  return raw;
}

export function malformed(expected: string, raw: unknown): ServiceError {
  const found = typeof raw === 'object' ? (Array.isArray(raw) ? `${raw.length} fields` : 'an object') : String(raw);
  return new ServiceError('INVALID_ARGUMENT', `malformed lock message: expected ${expected}, found ${found}`);
}
