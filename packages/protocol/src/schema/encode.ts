/** Encoders made from declarations: closures that no longer read any declaration (codec.ts has the rules). */
import { malformed } from './malformed.ts';
import type { AnyKind, Field, Fields, Shape, StructShape, UnionShape } from './shape.ts';

export type Encode = (value: unknown) => unknown;
type Fielded = Readonly<Record<string, unknown>>;

const encoders = new WeakMap<Shape, Encode>();

/** Created once for each kind, however many declarations use it. */
export function encoder({ shape }: AnyKind): Encode {
  const known = encoders.get(shape);
  if (known !== undefined) return known;
  const made = makeEncoder(shape);
  encoders.set(shape, made);
  return made;
}

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

export interface FieldsEncoder {
  /** Appends the fields of `value` to `out`, without trailing ones that have their `absent` value (SC4). */
  readonly write: (value: unknown, out: unknown[]) => void;
  readonly writeAll: (value: unknown, out: unknown[]) => void;
  /** The number of positions that `write` writes; at least `least`. */
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

export function fieldsEncoder(fields: Fields): FieldsEncoder {
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
  // Added fields take one position each.
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

/** The number of positions of a field. */
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
