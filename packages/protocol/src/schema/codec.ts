/**
 * Encoders and decoders made from declarations. A value becomes lists, numbers, text and bytes, which the packer writes;
 * a decoder takes the same from the unpacker, which has checked every count against the bytes that are there.
 *
 * SC1. A decoder returns a value of the declared type, within the declared bounds, or throws `MalformedMessage`.
 * SC2. An *open* decoder passes over fields behind those that it knows, in every struct and variant. A *closed* decoder
 *      refuses them. Both fill in fields that the declaration says were added later.
 * SC3. Words, tags and positions are never reused: what an earlier release wrote means the same.
 * SC4. Trailing fields that have their `absent` value are not written, so a message is in the oldest form that can say it.
 * SC5. A decoder makes nothing of the size that a message announces: lists are read from lists that are there.
 */
import { assert } from '@remora/base';
import { compileDecoder, compileEncoder, type Interpreter } from './compile.ts';
import { MalformedMessage, malformed, within } from './malformed.ts';
import type { AnyKind, Field, Fields, Kind, Shape, StructShape, UnionShape } from './shape.ts';

export type Mode = 'open' | 'closed';

export interface Codec<T> {
  encode(value: T): unknown;
  /** SC1. */
  decode(raw: unknown): T;
}

type Encode = (value: unknown) => unknown;
type Decode = (raw: unknown) => unknown;
type Fielded = Readonly<Record<string, unknown>>;

/** For calls, heartbeats and answers: an older reader passes over what it does not know (SC2). */
export function openCodec<T>(kind: Kind<T>): Codec<T> {
  return codecOf(kind, 'open');
}

/** For log entries, commands, stored rows and snapshots: whoever skipped a part of these would do something else (SC2). */
export function closedCodec<T>(kind: Kind<T>): Codec<T> {
  return codecOf(kind, 'closed');
}

/** A codec that is used so often is compiled. Most messages of a command-line program never are. */
const USES_UNTIL_COMPILED = 100;

/** A codec starts as closures, and is compiled once it is used often. `compiled` false: it never is. */
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
        return slow.decode(raw); // It says what is wrong.
      }
    },
  };
}

/** What compiled code falls back on. */
export const interpreter: Interpreter = {
  encoder: (kind) => encoder(kind),
  decoder: (kind, mode) => decoder(kind, mode),
  addedNeeded: (fields) => {
    const { needed, least } = fieldsEncoder(fields);
    return (value) => needed(value) - least;
  },
};

const encoders = new WeakMap<Shape, Encode>();
const decoders: Readonly<Record<Mode, WeakMap<Shape, Decode>>> = { open: new WeakMap(), closed: new WeakMap() };

/** Made once for each kind, however many declarations use it. */
function encoder({ shape }: AnyKind): Encode {
  const known = encoders.get(shape);
  if (known !== undefined) return known;
  const made = makeEncoder(shape);
  encoders.set(shape, made);
  return made;
}

function decoder({ shape }: AnyKind, mode: Mode): Decode {
  const known = decoders[mode].get(shape);
  if (known !== undefined) return known;
  const made = makeDecoder(shape, mode);
  decoders[mode].set(shape, made);
  return made;
}

// ------------------------------------------------------------------------------------------------ encoders

function makeEncoder(shape: Shape): Encode {
  switch (shape.is) {
    case 'int64':
      return shape.wide ? same : (value) => (value === 0n ? 0 : value);
    case 'words':
      return shape.asText ? same : wordEncoder(shape.name, shape.words);
    case 'flags':
      return flagsEncoder(shape.names);
    case 'textMap':
      return (value) => Object.entries(value as Fielded).flat();
    case 'nothing':
      return () => null;
    case 'optional': {
      const inner = encoder(shape.of);
      return (value) => (value === undefined ? null : inner(value));
    }
    case 'list': {
      const inner = encoder(shape.of);
      return (value) => (value as readonly unknown[]).map((item) => inner(item));
    }
    case 'tuple': {
      const inner = shape.of.map(encoder);
      return (value) => inner.map((encode, i) => encode((value as readonly unknown[])[i]));
    }
    case 'struct':
      return structEncoder(shape);
    case 'union':
      return unionEncoder(shape);
    case 'mapped': {
      const [inner, from] = [encoder(shape.of), shape.from as Encode];
      return (value) => inner(from(value));
    }
    case 'choice': {
      const [first, second] = shape.of.map(encoder) as [Encode, Encode];
      const pick = shape.ofValue as (value: unknown) => 0 | 1;
      return (value) => (pick(value) === 0 ? first(value) : second(value));
    }
    case 'sealed':
      return encoder(shape.of);
    case 'recursive':
      return (value) => encoder(shape.of())(value);
    case 'byHand':
      return shape.codec.encode as Encode;
    default:
      return same;
  }
}

function same(value: unknown): unknown {
  return value;
}

function wordEncoder(name: string, list: readonly string[]): Encode {
  const positions = new Map<unknown, number>(list.map((word, i) => [word, i]));
  return (value) => {
    const position = positions.get(value);
    if (position === undefined) throw malformed(name, value);
    return position;
  };
}

function flagsEncoder(names: readonly string[]): Encode {
  return (value) => {
    let sum = 0;
    for (let i = 0; i < names.length; i++) if ((value as Fielded)[names[i] ?? '']) sum |= 1 << i;
    return sum;
  };
}

interface FieldsEncoder {
  /** Writes the fields of `value` behind what is in `out`, without trailing ones that have their `absent` value (SC4). */
  readonly write: (value: unknown, out: unknown[]) => void;
  readonly writeAll: (value: unknown, out: unknown[]) => void;
  /** How many positions `write` writes; at least `least`. */
  readonly needed: (value: unknown) => number;
  readonly least: number;
}

function structEncoder({ fields }: StructShape): Encode {
  const { write } = fieldsEncoder(fields);
  return (value) => {
    const out: unknown[] = [];
    write(value, out);
    return out;
  };
}

function fieldsEncoder(fields: Fields): FieldsEncoder {
  const steps = Object.entries(fields).map(([name, field]) => stepEncoder(name, field));
  const last = Object.entries(fields).flatMap(([name, { added }]) => (added === undefined ? [] : [{ name, added }]));
  const first = steps.length - last.length;
  const writeFirst = (value: unknown, out: unknown[], count: number): void => {
    for (let i = 0; i < count; i++) steps[i]?.(value as Fielded, out);
  };
  const writeAll = (value: unknown, out: unknown[]): void => writeFirst(value, out, steps.length);
  const end = (value: unknown): number => {
    let count = steps.length;
    for (; count > first; count--) {
      const field = last[count - first - 1];
      if (field === undefined || field.added.always) break;
      if (!isAbsent((value as Fielded)[field.name], field.added.absent)) break;
    }
    return count;
  };
  const width = Object.values(fields).reduce((sum, field) => sum + widthOf(field), 0);
  // Fields that were added take one position each.
  const needed = (value: unknown): number => width - steps.length + end(value);
  const write = last.length === 0 ? writeAll : (value: unknown, out: unknown[]) => writeFirst(value, out, end(value));
  return { write, writeAll, needed, least: width - last.length };
}

function isAbsent(value: unknown, absent: unknown): boolean {
  if (value === absent || value === undefined) return true;
  return isEmpty(value) && isEmpty(absent);
}

function isEmpty(value: unknown): boolean {
  return (Array.isArray(value) || value instanceof Uint8Array) && value.length === 0;
}

/** How many positions a field takes. */
function widthOf({ kind: { shape }, placing }: Field<unknown>): number {
  if (placing === 'flatSpread') return 2;
  if (placing !== 'flat' || shape.is !== 'struct') return 1;
  return Object.values(shape.fields).reduce((sum, field) => sum + widthOf(field), 0);
}

function stepEncoder(name: string, { kind, placing }: Field<unknown>): (value: Fielded, out: unknown[]) => void {
  if (placing === 'flat' && kind.shape.is === 'struct') {
    const { writeAll } = fieldsEncoder(kind.shape.fields);
    return (value, out) => writeAll(value[name], out);
  }
  const encode = encoder(kind);
  if (placing === 'spread') return (value, out) => out.push(encode(value));
  if (placing === 'flatSpread') return (value, out) => out.push(...(encode(value) as readonly unknown[]));
  return (value, out) => out.push(encode(value[name]));
}

function unionEncoder({ name, by, variants, branches }: UnionShape): Encode {
  const byType = new Map<unknown, Encode>();
  for (const [type, { tag, fields }] of Object.entries(variants)) {
    const { write } = fieldsEncoder(fields);
    byType.set(type, (value) => {
      const out: unknown[] = [tag];
      write(value, out);
      return out;
    });
  }
  for (const { tag, of, types } of branches) {
    const encode = encoder(of);
    for (const type of types) byType.set(type, (value) => [tag, encode(value)]);
  }
  return (value) => {
    const type = (value as Fielded)[by];
    const encode = byType.get(type);
    if (encode === undefined) throw malformed(name, type);
    return encode(value);
  };
}

/** The fields of a struct without their list, for rows, whose list begins with a version (codec/stored.ts). */
export interface FieldsCodec<T> {
  /** All fields, and how many of them are needed: the others have their `absent` values. */
  encode(value: T): { readonly fields: readonly unknown[]; readonly needed: number };
  decode(fields: readonly unknown[]): T;
}

/** Closed, as all rows are. */
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

// ------------------------------------------------------------------------------------------------ decoders

const INT64_MIN = -(1n << 63n);
const INT64_MAX = (1n << 63n) - 1n;

function makeDecoder(shape: Shape, mode: Mode): Decode {
  switch (shape.is) {
    case 'uint':
      return uintDecoder(shape.min, shape.max);
    case 'int':
      return checked('a whole number', Number.isSafeInteger);
    case 'ms':
      return checked('a number', Number.isFinite);
    case 'bool':
      return checked('true or false', (raw) => typeof raw === 'boolean');
    case 'text':
      return textDecoder(shape);
    case 'bytes':
      return checked('bytes', (raw) => raw instanceof Uint8Array);
    case 'int64':
      return decodeInt64;
    case 'words':
      return shape.asText ? nameDecoder(shape.name, shape.words) : wordDecoder(shape.name, shape.words);
    case 'flags':
      return flagsDecoder(shape.names);
    case 'textMap':
      return decodeTextMap;
    case 'details':
      return decodeDetails;
    case 'nothing':
      return mode === 'open' ? () => undefined : decodeNull;
    case 'optional': {
      const inner = decoder(shape.of, mode);
      return (raw) => (raw === null ? undefined : inner(raw));
    }
    case 'list':
      return listDecoder(decoder(shape.of, mode), shape);
    case 'tuple':
      return tupleDecoder(
        shape.name,
        shape.of.map((of) => decoder(of, mode)),
        mode,
      );
    case 'struct':
      return structDecoder(shape, mode);
    case 'union':
      return unionDecoder(shape, mode);
    case 'mapped': {
      const [inner, to] = [decoder(shape.of, mode), shape.to as Decode];
      return (raw) => to(inner(raw));
    }
    case 'choice': {
      const [first, second] = shape.of.map((of) => decoder(of, mode)) as [Decode, Decode];
      return (raw) => {
        if (!Array.isArray(raw)) throw malformed('a list', raw);
        return shape.ofRaw(raw) === 0 ? first(raw) : second(raw);
      };
    }
    case 'sealed':
      return decoder(shape.of, 'closed');
    case 'recursive':
      return recursiveDecoder(shape, mode);
    case 'byHand':
      return shape.codec.decode as Decode;
  }
}

function checked(expected: string, is: (raw: unknown) => boolean): Decode {
  return (raw) => {
    if (!is(raw)) throw malformed(expected, raw);
    return raw;
  };
}

function uintDecoder(min: number, max: number): Decode {
  const expected =
    max === Number.MAX_SAFE_INTEGER ? `a whole number from ${min}` : `a whole number from ${min} to ${max}`;
  return (raw) => {
    if (!Number.isSafeInteger(raw) || (raw as number) < min || (raw as number) > max) throw malformed(expected, raw);
    return raw;
  };
}

function textDecoder({ min, max, pattern }: Extract<Shape, { readonly is: 'text' }>): Decode {
  if (min === 0 && max === Number.MAX_SAFE_INTEGER) return checked('text', (raw) => typeof raw === 'string');
  const expected = `text of ${min} to ${max} characters${pattern === undefined ? '' : ` that matches ${pattern.source}`}`;
  return (raw) => {
    if (typeof raw !== 'string' || raw.length < min || raw.length > max) throw malformed(expected, raw);
    if (pattern !== undefined && !pattern.test(raw)) throw malformed(expected, raw);
    return raw;
  };
}

/** The unpacker gives small ones as numbers. */
function decodeInt64(raw: unknown): bigint {
  if (raw === 0) return 0n;
  if (typeof raw === 'bigint' && raw >= INT64_MIN && raw <= INT64_MAX) return raw;
  if (Number.isSafeInteger(raw)) return BigInt(raw as number);
  throw malformed('a whole number of 64 bits', raw);
}

function decodeNull(raw: unknown): undefined {
  if (raw !== null) throw malformed('null', raw);
  return undefined;
}

function wordDecoder(name: string, list: readonly string[]): Decode {
  return (raw) => {
    const word = typeof raw === 'number' ? list[raw] : undefined;
    if (word === undefined) throw malformed(`a ${name} from 0 to ${list.length - 1}`, raw);
    return word;
  };
}

function nameDecoder(name: string, list: readonly string[]): Decode {
  const known = new Set<unknown>(list);
  return checked(`the name of a ${name}`, (raw) => known.has(raw));
}

function flagsDecoder(names: readonly string[]): Decode {
  const decode = uintDecoder(0, (1 << names.length) - 1);
  return (raw) => {
    const sum = decode(raw) as number;
    const value: Record<string, boolean> = {};
    for (let i = 0; i < names.length; i++) value[names[i] ?? ''] = (sum & (1 << i)) !== 0;
    return value;
  };
}

function decodeTextMap(raw: unknown): Readonly<Record<string, string>> {
  if (!Array.isArray(raw) || raw.length % 2 !== 0) throw malformed('names and values by turns', raw);
  const out: Record<string, string> = Object.create(null);
  for (let i = 0; i < raw.length; i += 2) {
    const [name, value] = [raw[i], raw[i + 1]];
    if (typeof name !== 'string' || typeof value !== 'string')
      throw malformed('text', typeof name === 'string' ? value : name);
    out[name] = value;
  }
  return { ...out };
}

function decodeDetails(raw: unknown): object {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw) || raw instanceof Uint8Array) {
    throw malformed('an object', raw);
  }
  return { ...raw };
}

function listDecoder(decode: Decode, { max, distinct }: Extract<Shape, { readonly is: 'list' }>): Decode {
  return (raw) => {
    if (!Array.isArray(raw)) throw malformed('a list', raw);
    if (raw.length > max) throw malformed(`a list of at most ${max}`, raw);
    const out = new Array<unknown>(raw.length);
    for (let i = 0; i < raw.length; i++) out[i] = decode(raw[i]);
    if (distinct && new Set(out).size !== out.length) throw malformed('a list that has nothing twice', raw);
    return out;
  };
}

function tupleDecoder(name: string, decode: readonly Decode[], mode: Mode): Decode {
  return (raw) => {
    const given = listOf(name, raw, { min: decode.length, max: decode.length, mode });
    try {
      return decode.map((one, i) => one(given[i]));
    } catch (error) {
      throw within(error, name);
    }
  };
}

interface Counts {
  readonly min: number;
  readonly max: number;
  readonly mode: Mode;
}

/** SC2. */
function listOf(name: string, raw: unknown, { min, max, mode }: Counts): readonly unknown[] {
  if (!Array.isArray(raw)) throw malformed(`the fields of ${name}`, raw);
  if (raw.length < min) throw malformed(`at least ${min} fields of ${name}`, raw);
  if (mode === 'closed' && raw.length > max) throw malformed(`at most ${max} fields of ${name}`, raw);
  return raw;
}

/** Reads fields of `value` from the list. */
interface FieldsDecoder {
  /** Positions that it takes at least, and at most. */
  readonly min: number;
  readonly max: number;
  readonly read: (given: readonly unknown[], from: number, value: Record<string, unknown>) => void;
}

function structDecoder({ name, fields }: StructShape, mode: Mode): Decode {
  const { min, max, read } = fieldsDecoder(fields, mode);
  const counts = { min, max, mode };
  return (raw) => {
    const value = {};
    try {
      read(listOf(name, raw, counts), 0, value);
    } catch (error) {
      throw within(error, name);
    }
    return value;
  };
}

function fieldsDecoder(fields: Fields, mode: Mode): FieldsDecoder {
  const steps: { readonly name: string; readonly at: number; readonly read: FieldsDecoder['read'] }[] = [];
  let [min, max] = [0, 0];
  for (const [name, field] of Object.entries(fields)) {
    const step = stepDecoder(name, field, mode);
    steps.push({ name, at: max, read: step.read });
    max += step.max;
    min += step.min;
  }
  const read: FieldsDecoder['read'] = (given, from, value) => {
    let name = '';
    try {
      for (const step of steps) {
        name = step.name;
        step.read(given, from + step.at, value);
      }
    } catch (error) {
      throw within(error, name);
    }
  };
  return { min, max, read };
}

function stepDecoder(name: string, { kind, placing, added }: Field<unknown>, mode: Mode): FieldsDecoder {
  if (placing === 'flat' && kind.shape.is === 'struct') {
    const { min, max, read } = fieldsDecoder(kind.shape.fields, mode);
    return { min, max, read: (given, from, value) => read(given, from, inner(value, name)) };
  }
  const decode = decoder(kind, mode);
  if (placing === 'spread') {
    return { min: 1, max: 1, read: (given, from, value) => Object.assign(value, decode(given[from])) };
  }
  if (placing === 'flatSpread') {
    return {
      min: 2,
      max: 2,
      read: (given, from, value) => Object.assign(value, decode([given[from], given[from + 1]])),
    };
  }
  const put = (value: Record<string, unknown>, found: unknown): void => {
    if (placing !== 'leftOut' || found !== undefined) value[name] = found;
  };
  if (added === undefined) return { min: 1, max: 1, read: (given, from, value) => put(value, decode(given[from])) };
  return {
    min: 0,
    max: 1,
    read: (given, from, value) => put(value, from < given.length ? decode(given[from]) : added.absent),
  };
}

function inner(value: Record<string, unknown>, name: string): Record<string, unknown> {
  const inner = {};
  value[name] = inner;
  return inner;
}

function unionDecoder({ name, by, variants, branches }: UnionShape, mode: Mode): Decode {
  const byTag = new Map<unknown, Decode>();
  for (const [type, { tag, fields }] of Object.entries(variants)) {
    byTag.set(tag, variantDecoder(`${name} ${type}`, { by, type, fields, mode }));
  }
  for (const { tag, of } of branches) {
    const decode = decoder(of, mode);
    byTag.set(tag, (raw) => decode(listOf(name, raw, { min: 2, max: 2, mode })[1]));
  }
  return (raw) => {
    const tag = Array.isArray(raw) ? raw[0] : undefined;
    const decode = byTag.get(tag);
    if (decode === undefined) throw malformed(`a tag of ${name}`, Array.isArray(raw) ? tag : raw);
    return decode(raw);
  };
}

interface VariantOf {
  readonly by: string;
  readonly type: string;
  readonly fields: Fields;
  readonly mode: Mode;
}

function variantDecoder(name: string, { by, type, fields, mode }: VariantOf): Decode {
  const { min, max, read } = fieldsDecoder(fields, mode);
  const counts = { min: min + 1, max: max + 1, mode };
  return (raw) => {
    const value: Record<string, unknown> = {};
    value[by] = type;
    try {
      read(listOf(name, raw, counts), 1, value);
    } catch (error) {
      throw within(error, name);
    }
    return value;
  };
}

/** The depth is state of the decoder: decoding never runs inside itself otherwise. */
function recursiveDecoder(shape: Extract<Shape, { readonly is: 'recursive' }>, mode: Mode): Decode {
  let depth = 0;
  return (raw) => {
    if (depth >= shape.depthMax) {
      throw new MalformedMessage(`${shape.name}: nested too deep, the limit is ${shape.depthMax}`);
    }
    depth++;
    try {
      return decoder(shape.of(), mode)(raw);
    } finally {
      depth--;
    }
  };
}
