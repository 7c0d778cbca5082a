/**
 * Inputs: arbitrary bytes, and valid inputs with a few changes of the kinds that have broken decoders before. A change
 * is data, so that fast-check can shrink a list of changes. `apply` executes it.
 */
import fc from 'fast-check';

type Mutation =
  | { readonly op: 'flip'; readonly at: number; readonly bit: number }
  | { readonly op: 'set'; readonly at: number; readonly byte: number }
  | { readonly op: 'cut'; readonly at: number }
  | { readonly op: 'remove'; readonly at: number; readonly length: number }
  | { readonly op: 'repeat'; readonly at: number; readonly length: number; readonly times: number }
  | { readonly op: 'insert'; readonly at: number; readonly bytes: Uint8Array }
  /** A field of 1 to 8 bytes, or a varint, with a number at the edge of its range. */
  | { readonly op: 'number'; readonly at: number; readonly bytes: Uint8Array }
  /** Deep nesting: the opening bytes of a list, a map or a message, repeated many times. */
  | { readonly op: 'nest'; readonly at: number; readonly opener: Uint8Array; readonly times: number }
  /** The beginning of this input and the end of another. */
  | { readonly op: 'splice'; readonly at: number; readonly other: number; readonly from: number };

/** Positions are fractions, because inputs change their length. */
const PLACES = 2 ** 20;
/** The largest size of an input. */
const INPUT_BYTES_MAX = 256 * 1024;

const EDGE_BYTES = [
  ...[0x00, 0x01, 0x0f, 0x20, 0x22, 0x2c, 0x5b, 0x7b, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1],
  ...[0xc4, 0xc6, 0xc7, 0xc9, 0xca, 0xcb, 0xcf, 0xd3, 0xd4, 0xd5, 0xd8, 0xdb, 0xdc, 0xdd, 0xde, 0xdf, 0xe0, 0xff],
];

/** Big-endian, little-endian and as varints. */
const EDGE_NUMBERS: readonly Uint8Array[] = [
  '00',
  'ff',
  '0000',
  'ffff',
  '7fffffff',
  'ffffff7f',
  '80000000',
  'ffffffff',
  '01000000',
  '00ffffff',
  '1fffffffffffff',
  '001fffffffffffff',
  '0020000000000000',
  '7fffffffffffffff',
  '8000000000000000',
  'ffffffffffffffff',
  '7ff8000000000000',
  '7ff0000000000000',
  'c340000000000000',
  'ffffff7f',
  'ffffffff0f',
  'ffffffffffffff0f',
  'ffffffffffffff7f',
  '80808080808080808001',
  'ffffffffffffffffff01',
].map((hex) => Buffer.from(hex, 'hex'));

const OPENERS: readonly Uint8Array[] = [
  ...['91', '9f90', '81a0', '8fa0', 'dc0001', 'dd00000001', 'dd00ffffff', 'df00000001a0', 'd47240', 'c8000069'].map(
    (hex) => Buffer.from(hex, 'hex'),
  ),
  ...['[', '{"a":', '- ', 'a: ', '- - ', '"', '\\', ',', '%', '{{'].map((text) => Buffer.from(text)),
];

/** Text and bytes that have caused problems for decoders. */
const WORDS: readonly Uint8Array[] = [
  ...['__proto__', 'constructor', 'toString', 'length', 'then', '1e999', '-0', 'NaN', 'Infinity', '9007199254740993'],
  ...['\u0000', '\ufeff', '\u2028', '\ud83d\ude00', '0x10', '&a [*a]', '*a', '<<: *a', '!!js/function', '../../x'],
].map((text) => Buffer.from(text));
const BAD_UTF8 = ['ff', 'c0af', 'eda080', 'f4908080', 'e28282', '80'].map((hex) => Buffer.from(hex, 'hex'));

const place = fc.nat({ max: PLACES });
const anyBytes = fc.uint8Array({ maxLength: 16 });

const mutation: fc.Arbitrary<Mutation> = fc.oneof(
  fc.record({ op: fc.constant('flip' as const), at: place, bit: fc.nat({ max: 7 }) }),
  fc.record({
    op: fc.constant('set' as const),
    at: place,
    byte: fc.oneof(fc.constantFrom(...EDGE_BYTES), fc.nat({ max: 255 })),
  }),
  fc.record({ op: fc.constant('cut' as const), at: place }),
  fc.record({ op: fc.constant('remove' as const), at: place, length: fc.integer({ min: 1, max: 32 }) }),
  fc.record({
    op: fc.constant('repeat' as const),
    at: place,
    length: fc.integer({ min: 1, max: 64 }),
    times: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.integer({ min: 1, max: 3000 })),
  }),
  fc.record({
    op: fc.constant('insert' as const),
    at: place,
    bytes: fc.oneof(anyBytes, fc.constantFrom(...WORDS, ...BAD_UTF8)),
  }),
  fc.record({ op: fc.constant('number' as const), at: place, bytes: fc.constantFrom(...EDGE_NUMBERS) }),
  fc.record({
    op: fc.constant('nest' as const),
    at: place,
    opener: fc.constantFrom(...OPENERS),
    times: fc.oneof(fc.integer({ min: 1, max: 100 }), fc.integer({ min: 1, max: 40_000 })),
  }),
  fc.record({ op: fc.constant('splice' as const), at: place, other: fc.nat(), from: place }),
);

/** Any input for a decoder whose valid inputs are `corpus`. */
export function inputs(corpus: readonly Uint8Array[]): fc.Arbitrary<Uint8Array> {
  const mutated = fc
    .record({ seed: fc.nat(), mutations: fc.array(mutation, { minLength: 1, maxLength: 6 }) })
    .map(({ seed, mutations }) =>
      mutations.reduce((input, change) => apply(input, change, corpus), pick(corpus, seed)),
    );
  return fc.oneof(
    { weight: 1, arbitrary: fc.uint8Array({ maxLength: 200, size: 'max' }) },
    { weight: 9, arbitrary: mutated },
  );
}

function pick(corpus: readonly Uint8Array[], seed: number): Uint8Array {
  return corpus[seed % Math.max(1, corpus.length)] ?? new Uint8Array(0);
}

function apply(input: Uint8Array, change: Mutation, corpus: readonly Uint8Array[]): Uint8Array {
  const at = Math.floor((change.at / (PLACES + 1)) * (input.length + 1));
  const [before, after] = [input.subarray(0, at), input.subarray(at)];
  switch (change.op) {
    case 'flip':
      return changed(input, at, (byte) => byte ^ (1 << change.bit));
    case 'set':
      return changed(input, at, () => change.byte);
    case 'cut':
      return before;
    case 'remove':
      return join(before, after.subarray(change.length));
    case 'repeat':
      return join(before, times(after.subarray(0, change.length), change.times), after);
    case 'insert':
      return join(before, change.bytes, after);
    case 'number':
      return join(before, change.bytes, after.subarray(change.bytes.length));
    case 'nest':
      return join(before, times(change.opener, change.times), after);
    case 'splice': {
      const other = pick(corpus, change.other);
      return join(before, other.subarray(Math.floor((change.from / PLACES) * other.length)));
    }
  }
}

function changed(input: Uint8Array, at: number, to: (byte: number) => number): Uint8Array {
  const out = Uint8Array.from(input);
  if (at < out.length) out[at] = to(out[at] ?? 0);
  return out;
}

function times(bytes: Uint8Array, count: number): Uint8Array {
  const fitting = bytes.length === 0 ? 0 : Math.min(count, Math.floor(INPUT_BYTES_MAX / bytes.length));
  return Buffer.alloc(bytes.length * fitting, bytes);
}

function join(...parts: readonly Uint8Array[]): Uint8Array {
  return Uint8Array.from(Buffer.concat(parts).subarray(0, INPUT_BYTES_MAX));
}
