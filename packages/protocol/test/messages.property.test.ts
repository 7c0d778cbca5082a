// What holds for every declared message, whatever is in it (schema/codec.ts SC1 to SC5, rpc/method.ts DM1).
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { packPlain } from '../src/internal/codec/pack.ts';
import { unpack } from '../src/internal/codec/unpack.ts';
import { codecOf, interpreter, type Mode } from '../src/schema/codec.ts';
import { compileDecoder, compileEncoder } from '../src/schema/compile.ts';
import { MalformedMessage } from '../src/schema/malformed.ts';
import type { AnyKind, Fields, Shape } from '../src/schema/shape.ts';
import { arbitraryOf } from './support/arbitrary.ts';
import { ABSENT, evolved, laterIn, withoutLater } from './support/evolution.ts';
import { CLOSED_MESSAGES, MESSAGES, METHODS, OPEN_MESSAGES } from './support/messages.ts';

const RUNS = { numRuns: 60 };

const encode = (kind: AnyKind, value: unknown): Buffer =>
  packPlain(codecOf(kind, 'open', { compiled: false }).encode(value));
const decode = (kind: AnyKind, mode: Mode, bytes: Uint8Array): unknown =>
  codecOf(kind, mode, { compiled: false }).decode(unpack(bytes, 0));

/** Bytes of whatever class as text, and no difference between a field that is undefined and none. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return `bytes:${Buffer.from(value).toString('hex')}`;
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== 'object') return value;
  const there = Object.entries(value).filter(([, field]) => field !== undefined);
  return Object.fromEntries(there.map(([name, field]) => [name, plain(field)]));
}

describe('every message', () => {
  test.each(MESSAGES)('$name survives the wire', ({ kind, mode }) => {
    fc.assert(
      fc.property(arbitraryOf(kind), (value) => {
        expect(plain(decode(kind, mode, encode(kind, value)))).toStrictEqual(plain(value));
      }),
      RUNS,
    );
  });

  test.each(MESSAGES)('$name is coded alike by compiled code, and refused alike', ({ kind, mode }) => {
    const [fastEncode, fastDecode] = [compileEncoder(kind, interpreter), compileDecoder(kind, mode, interpreter)];
    const outcome = (decoder: (raw: unknown) => unknown, raw: unknown): unknown => {
      try {
        return plain(decoder(raw));
      } catch {
        return 'refused';
      }
    };
    fc.assert(
      fc.property(arbitraryOf(kind), fc.nat(), (value, at) => {
        const bytes = encode(kind, value);
        expect(packPlain(fastEncode?.(value)).equals(bytes)).toBe(true);
        const slow = codecOf(kind, mode, { compiled: false });
        for (const raw of [unpack(bytes, 0), ...damages(unpack(bytes, 0), at)]) {
          expect(outcome(fastDecode ?? fail, raw)).toStrictEqual(outcome(slow.decode, raw));
        }
      }),
      RUNS,
    );
  });

  test.each(MESSAGES)('a damaged $name decodes or is malformed, and nothing else happens', ({ kind, mode }) => {
    const { decode } = codecOf(kind, mode);
    const tagged = fc.tuple(
      fc.nat({ max: 60 }),
      fc.array(fc.anything({ withBigInt: true, maxDepth: 3 }), { maxLength: 6 }),
    );
    const anything = fc.oneof(
      fc.anything({ withBigInt: true, withTypedArray: true, maxDepth: 3 }),
      tagged.map(([tag, rest]) => [tag, ...rest]),
    );
    fc.assert(
      fc.property(anything, (raw) => expectDecodesOrRefuses(() => decode(raw))),
      RUNS,
    );
    fc.assert(
      fc.property(arbitraryOf(kind), fc.nat(), (value, at) => {
        for (const raw of damages(unpack(encode(kind, value), 0), at)) expectDecodesOrRefuses(() => decode(raw));
      }),
      RUNS,
    );
  });
});

describe('a message that may grow', () => {
  test.each(OPEN_MESSAGES)('$name: a reader passes over what a later writer added (SC2)', ({ kind }) => {
    const later = evolved(kind);
    fc.assert(
      fc.property(arbitraryOf(later), (value) => {
        expect(plain(decode(kind, 'open', encode(later, value)))).toStrictEqual(plain(withoutLater(value)));
      }),
      RUNS,
    );
  });

  test.each(MESSAGES)('$name: a reader fills in what an earlier writer lacks (SC2)', ({ kind, mode }) => {
    const later = evolved(kind);
    fc.assert(
      fc.property(arbitraryOf(kind), (value) => {
        const read = decode(later, mode, encode(kind, value));
        expect(plain(withoutLater(read))).toStrictEqual(plain(value));
        expect(laterIn(read).every((added) => added === ABSENT)).toBe(true);
        if (kind.shape.is === 'struct') expect(laterIn(read).length).toBeGreaterThan(0);
      }),
      RUNS,
    );
  });

  test.each(MESSAGES)('$name: what says nothing new is written as before (SC4)', ({ kind }) => {
    fc.assert(
      fc.property(arbitraryOf(kind), (value) => {
        expect(encode(evolved(kind), value).equals(encode(kind, value))).toBe(true);
      }),
      RUNS,
    );
  });
});

describe('a message that must be understood as a whole', () => {
  test.each(CLOSED_MESSAGES)('$name: a reader refuses what a later writer added (SC2)', ({ kind }) => {
    const later = evolved(kind);
    let refused = 0;
    fc.assert(
      fc.property(arbitraryOf(later), (value) => {
        const isNew = !encode(later, value).equals(encode(kind, withoutLater(value)));
        if (!isNew) return;
        refused++;
        expect(() => decode(kind, 'closed', encode(later, value))).toThrow(MalformedMessage);
      }),
      RUNS,
    );
    expect(refused).toBeGreaterThan(0);
  });

  test('a command or a query in a request is one, although the request may grow', () => {
    const requests = OPEN_MESSAGES.filter(({ name }) => /^(range.execute|kv.command|kv.query) request$/.test(name));
    expect(requests).toHaveLength(3);
    for (const { kind } of requests) expect(sealedIn(kind)).toBeGreaterThan(0);
  });
});

test('a field that a reader of a request may skip says why that does no harm (DM1)', () => {
  const silent = METHODS.flatMap(({ name, declared }) =>
    addedIn(declared.request)
      .filter(({ skippable }) => skippable === undefined)
      .map(() => name),
  );
  expect(silent).toEqual([]);
});

test('every tag of a union means one variant, and fields that were added come last', () => {
  for (const { name, kind } of MESSAGES) {
    for (const shape of shapesIn(kind)) {
      if (shape.is === 'union') {
        const tags = [...Object.values(shape.variants), ...shape.branches].map(({ tag }) => tag);
        expect(new Set(tags).size, `${name}: ${shape.name}`).toBe(tags.length);
      }
      for (const fields of fieldsOf(shape)) {
        const isAdded = Object.values(fields).map(({ added }) => added !== undefined);
        expect(isAdded, name).toEqual(isAdded.toSorted());
      }
    }
  }
});

// ------------------------------------------------------------------------------------------------ helpers

function fieldsOf(shape: Shape): readonly Fields[] {
  if (shape.is === 'struct') return [shape.fields];
  return shape.is === 'union' ? Object.values(shape.variants).map(({ fields }) => fields) : [];
}

/** All shapes of a kind, but for what is sealed in it. */
function shapesIn(kind: AnyKind, seen = new Set<Shape>()): ReadonlySet<Shape> {
  const { shape } = kind;
  if (seen.has(shape)) return seen;
  seen.add(shape);
  for (const inner of innerKinds(shape)) shapesIn(inner, seen);
  return seen;
}

function innerKinds(shape: Shape): readonly AnyKind[] {
  switch (shape.is) {
    case 'optional':
    case 'list':
    case 'mapped':
      return [shape.of];
    case 'tuple':
    case 'choice':
      return shape.of;
    case 'recursive':
      return [shape.of()];
    case 'struct':
    case 'union': {
      const kinds = fieldsOf(shape).flatMap((fields) => Object.values(fields).map(({ kind }) => kind));
      return shape.is === 'union' ? [...kinds, ...shape.branches.map(({ of }) => of)] : kinds;
    }
    default:
      return [];
  }
}

function addedIn(kind: AnyKind): readonly { readonly skippable: string | undefined }[] {
  return [...shapesIn(kind)].flatMap((shape) =>
    fieldsOf(shape).flatMap((fields) => Object.values(fields).flatMap(({ added }) => added ?? [])),
  );
}

function sealedIn(kind: AnyKind): number {
  return [...shapesIn(kind)].filter(({ is }) => is === 'sealed').length;
}

/** A few copies of `raw` with one thing wrong, at a place that `at` picks. */
function damages(raw: unknown, at: number): readonly unknown[] {
  if (!Array.isArray(raw) || raw.length === 0) return [null, 'text', -5, {}, [], raw];
  const place = at % raw.length;
  const inner = damages(raw[place], Math.floor(at / raw.length));
  return [raw.slice(1), raw.slice(0, -1), [...raw, 1], ...inner.map((wrong) => raw.with(place, wrong))];
}

function expectDecodesOrRefuses(run: () => unknown): void {
  try {
    run();
  } catch (error) {
    if ((error as { code?: unknown }).code !== 'INVALID_ARGUMENT') throw error;
  }
}

function fail(): never {
  throw new Error('code can be made from text here');
}
