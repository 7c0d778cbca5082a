/** Random values of declared kinds, and fixed ones. */
import fc from 'fast-check';
import type { AnyKind, Fields, Shape, UnionShape } from '../../src/schema/shape.ts';

/** Lists inside of so many others are empty. */
const DEPTH_MAX = 4;
const ITEMS_MAX = 3;

export function arbitraryOf(kind: AnyKind, depth = 0): fc.Arbitrary<unknown> {
  const { shape } = kind;
  switch (shape.is) {
    case 'uint':
      return fc.oneof(fc.constantFrom(shape.min, shape.max), fc.integer({ min: shape.min, max: shape.max }));
    case 'int':
      return fc.maxSafeInteger();
    case 'ms':
      return fc.oneof(fc.nat(), fc.double({ noNaN: true, noDefaultInfinity: true })).map((number) => number + 0);
    case 'bool':
      return fc.boolean();
    case 'text':
      return textOf(shape);
    case 'bytes':
      return fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes));
    case 'int64':
      return fc.oneof(fc.constantFrom(0n, -1n), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }));
    case 'words':
      return fc.constantFrom(...shape.words);
    case 'flags':
      return fc.record(Object.fromEntries(shape.names.map((name) => [name, fc.boolean()])));
    case 'textMap':
      return fc.dictionary(fc.string({ maxLength: 8 }), fc.string({ maxLength: 8 }), {
        noNullPrototype: true,
        maxKeys: 3,
      });
    case 'details': {
      const field = fc.string({ maxLength: 8 });
      return fc.dictionary(fc.string({ maxLength: 8 }), field, { noNullPrototype: true, maxKeys: 3 });
    }
    case 'nothing':
      return fc.constant(undefined);
    case 'optional':
      return fc.option(arbitraryOf(shape.of, depth), { nil: undefined });
    case 'list':
      return listOf(shape, depth);
    case 'tuple':
      return fc.tuple(...shape.of.map((of) => arbitraryOf(of, depth)));
    case 'struct':
      return objectOf(shape.fields, depth);
    case 'union':
      return unionOf(shape, depth);
    case 'mapped': {
      const to = shape.to as (plain: unknown) => unknown;
      return arbitraryOf(shape.of, depth)
        .filter((plain) => isMappable(to, plain))
        .map(to);
    }
    case 'choice':
      return fc.oneof(...shape.of.map((of) => arbitraryOf(of, depth)));
    case 'sealed':
      return arbitraryOf(shape.of, depth);
    case 'recursive':
      return fc.constant(undefined).chain(() => arbitraryOf(shape.of(), depth + 1));
    case 'byHand':
      return fc.constantFrom(...shape.samples());
  }
}

type OfShape<Is extends Shape['is']> = Extract<Shape, { readonly is: Is }>;

function textOf({ min, max, pattern }: OfShape<'text'>): fc.Arbitrary<string> {
  if (pattern !== undefined) return fc.constantFrom('a', 'n-1.b_C', 'Z'.repeat(Math.min(max, 64)));
  const short = fc.string({ minLength: min, maxLength: Math.min(max, 30), unit: 'binary' });
  const long = Math.min(max, 300);
  return fc.oneof(short, fc.constantFrom('x'.repeat(long), 'é'.repeat(Math.floor(long / 2) + min)));
}

function listOf({ of, max, distinct }: OfShape<'list'>, depth: number): fc.Arbitrary<unknown> {
  if (depth >= DEPTH_MAX) return fc.constant([]);
  const items = { maxLength: Math.min(max, ITEMS_MAX) };
  return distinct ? fc.uniqueArray(arbitraryOf(of, depth + 1), items) : fc.array(arbitraryOf(of, depth + 1), items);
}

function objectOf(fields: Fields, depth: number): fc.Arbitrary<Record<string, unknown>> {
  const entries = Object.entries(fields);
  return fc.tuple(...entries.map(([, { kind }]) => arbitraryOf(kind, depth))).map((values) => {
    const object: Record<string, unknown> = {};
    for (const [i, [name, { placing }]] of entries.entries()) {
      const value = values[i];
      if (placing === 'spread' || placing === 'flatSpread') Object.assign(object, value);
      else if (placing !== 'leftOut' || value !== undefined) object[name] = value;
    }
    return object;
  });
}

function unionOf({ by, variants, branches }: UnionShape, depth: number): fc.Arbitrary<unknown> {
  const own = Object.entries(variants).map(([type, { fields }]) =>
    objectOf(fields, depth).map((object) => ({ [by]: type, ...object })),
  );
  return fc.oneof(...own, ...branches.map(({ of }) => arbitraryOf(of, depth)));
}

function isMappable(to: (plain: unknown) => unknown, plain: unknown): boolean {
  try {
    to(plain);
    return true;
  } catch {
    return false;
  }
}

/** The same values in every run: what pinned formats and fuzzing begin with. */
export function samplesOf(kind: AnyKind, count: number): readonly unknown[] {
  return fc.sample(arbitraryOf(kind), { seed: 20_261_127, numRuns: count });
}
