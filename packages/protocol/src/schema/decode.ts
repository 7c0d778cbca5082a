/** Decoders made from declarations: closures that no longer read any declaration (codec.ts has the rules). */
import { MalformedMessage, malformed, within } from './malformed.ts';
import type { AnyKind, Field, Fields, Shape, StructShape, UnionShape } from './shape.ts';

/** SC2. */
export type Mode = 'open' | 'closed';
export type Decode = (raw: unknown) => unknown;

const decoders: Readonly<Record<Mode, WeakMap<Shape, Decode>>> = { open: new WeakMap(), closed: new WeakMap() };

/** Created once for each kind and mode. */
export function decoder({ shape }: AnyKind, mode: Mode): Decode {
  const known = decoders[mode].get(shape);
  if (known !== undefined) return known;
  const made = makeDecoder(shape, mode);
  decoders[mode].set(shape, made);
  return made;
}

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

/** The unpacker returns small ones as numbers. */
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
  /** The minimum and maximum number of positions that it takes. */
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

/** The depth is state of the decoder: decoding never nests otherwise. */
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
