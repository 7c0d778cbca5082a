/** The vocabulary of declarations. */
import type { Bytes } from '@remora/base';
import { malformed } from './malformed.ts';
import type { Branch, Field, Fields, HandCodec, Kind, Placing, Shape, Variant } from './shape.ts';

function kind<T>(shape: Shape): Kind<T> {
  return { shape };
}

/** A revision, term, index, id or count: a safe integer of 0 or more. */
export const uint: Kind<number> = uintBetween(0, Number.MAX_SAFE_INTEGER);
/** A difference: a safe integer of either sign. */
export const int: Kind<number> = kind({ is: 'int' });
/** A time, a duration or a rate: any finite number. */
export const ms: Kind<number> = kind({ is: 'ms' });
export const bool: Kind<boolean> = kind({ is: 'bool' });
export const text: Kind<string> = kind({ is: 'text', min: 0, max: Number.MAX_SAFE_INTEGER, pattern: undefined });
/** A slice of the frame: copy it to keep it. */
export const bytes: Kind<Bytes> = kind({ is: 'bytes' });
/** A lease id or another signed number of 64 bits; 0 takes one byte. */
export const int64: Kind<bigint> = kind({ is: 'int64', wide: false });
/** The same, always in nine bytes. */
export const wideInt64: Kind<bigint> = kind({ is: 'int64', wide: true });
export const textMap: Kind<Readonly<Record<string, string>>> = kind({ is: 'textMap' });
/** The details of an error: an object whose fields may hold anything that can be packed. */
export const details: Kind<Readonly<Record<string, unknown>>> = kind({ is: 'details' });
/** Text by name, as a MessagePack map. */
export const textObject: Kind<Readonly<Record<string, string>>> = mapped(
  details,
  (fields) => {
    for (const value of Object.values(fields)) if (typeof value !== 'string') throw malformed('text', value);
    return fields as Readonly<Record<string, string>>;
  },
  (fields) => fields,
);
/** True, or absent. */
export const yes: Kind<true> = mapped<boolean, true>(
  bool,
  (is) => {
    if (!is) throw malformed('true', is);
    return true;
  },
  (is) => is,
);
/** A message without content. */
export const nothing: Kind<undefined> = kind({ is: 'nothing' });

export function uintBetween(min: number, max: number): Kind<number> {
  return kind({ is: 'uint', min, max });
}

/** `min` to `max` characters that match the pattern. */
export function textOf(limits: {
  readonly min?: number;
  readonly max: number;
  readonly pattern?: RegExp;
}): Kind<string> {
  return kind({ is: 'text', min: limits.min ?? 0, max: limits.max, pattern: limits.pattern });
}

/** A closed set of words, sent as their positions: new words go last. */
export function words<const W extends string>(name: string, list: readonly W[]): Kind<W> {
  return kind({ is: 'words', name, words: list, asText: false });
}

/** The same, sent as text. */
export function names<const W extends string>(name: string, list: readonly W[]): Kind<W> {
  return kind({ is: 'words', name, words: list, asText: true });
}

/** Several booleans in one number, the first in its lowest bit. Declare them as a `spread` field. */
export function flags<const N extends string>(list: readonly N[]): Kind<{ readonly [K in N]: boolean }> {
  return kind({ is: 'flags', names: list });
}

/** Undefined is sent as null. */
export function optional<T>(of: Kind<T>): Kind<T | undefined> {
  return kind({ is: 'optional', of });
}

/** `max` bounds the items of a decoded list; without it the size of a frame does. */
export function list<T>(of: Kind<T>, max: number = Number.MAX_SAFE_INTEGER): Kind<readonly T[]> {
  return kind({ is: 'list', of, max, distinct: false });
}

/** A list of numbers or texts without duplicates. */
export function distinctList<T extends number | string>(of: Kind<T>, max: number): Kind<readonly T[]> {
  return kind({ is: 'list', of, max, distinct: true });
}

export function pair<A, B>(name: string, first: Kind<A>, second: Kind<B>): Kind<readonly [A, B]> {
  return kind({ is: 'tuple', name, of: [first, second] });
}

type FieldType<F> = F extends Field<infer T> ? T : never;
type Keys<F extends Fields, P extends Placing> = {
  [K in keyof F]: F[K] extends Field<unknown, P> ? K : never;
}[keyof F];
type Simple<T> = { [K in keyof T]: T[K] };
/** The intersection of the types of these fields; each is boxed, so that a union is not distributed. */
type Spread<F extends Fields, K extends keyof F> = [K] extends [never]
  ? unknown
  : (K extends unknown ? (box: { readonly all: FieldType<F[K]> }) => void : never) extends (box: infer B) => void
    ? B extends { readonly all: infer All }
      ? All
      : never
    : never;

/** The object that a struct with these fields decodes to. */
export type ValuesOf<F extends Fields> = Simple<
  { readonly [K in Keys<F, 'own' | 'flat'>]: FieldType<F[K]> } & {
    readonly [K in Keys<F, 'leftOut'>]?: Exclude<FieldType<F[K]>, undefined>;
  } & Spread<F, Keys<F, 'spread' | 'flatSpread'>>
>;

export function field<T>(of: Kind<T>, meaning: string): Field<T, 'own'> {
  return { kind: of, meaning, placing: 'own', added: undefined };
}

/** The decoded object lacks the field if there is no value. */
export function maybe<T>(of: Kind<T>, meaning: string): Field<T | undefined, 'leftOut'> {
  return { kind: optional(of), meaning, placing: 'leftOut', added: undefined };
}

/** A struct whose positions are positions of the struct around it. */
export function flat<T extends object>(of: Kind<T>, meaning: string): Field<T, 'flat'> {
  return { kind: of, meaning, placing: 'flat', added: undefined };
}

/** One position, whose fields are fields of the surrounding object. The field's own name is not used. */
export function spread<T extends object>(of: Kind<T>, meaning: string): Field<T, 'spread'> {
  return { kind: of, meaning, placing: 'spread', added: undefined };
}

/** A union whose variants have one field each: two positions, whose fields are fields of the surrounding object. */
export function flatSpread<T extends object>(of: Kind<T>, meaning: string): Field<T, 'flatSpread'> {
  return { kind: of, meaning, placing: 'flatSpread', added: undefined };
}

/** A field that a later release added at the end of a struct. `absent` is its value in earlier messages. */
export function added<T, P extends 'own' | 'leftOut'>(
  of: Field<T, P>,
  { since, absent, always = false, skippable }: AddedOptions<NoInfer<T>>,
): Field<T, P> {
  return { ...of, added: { since, absent, always, skippable } };
}

interface AddedOptions<T> {
  readonly since: string;
  readonly absent: T;
  readonly always?: boolean;
  readonly skippable?: string;
}

export function struct<F extends Fields>(name: string, fields: F): Kind<ValuesOf<F>> & { readonly fields: F } {
  return { shape: { is: 'struct', name, fields }, fields };
}

export function variant<F extends Fields>(tag: number, fields: F): Variant<F> {
  return { tag, fields };
}

type UnionOf<By extends string, V extends Readonly<Record<string, Variant>>> = {
  [K in keyof V]: Simple<{ readonly [B in By]: K } & ValuesOf<V[K]['fields']>>;
}[keyof V];

/** Values distinguished by the field `by`. On the wire the tag of a variant comes first, then its fields. */
export function union<By extends string, const V extends Readonly<Record<string, Variant>>>(
  name: string,
  by: By,
  variants: V,
): Kind<UnionOf<By, V>> {
  return kind({ is: 'union', name, by, variants, branches: [] });
}

/**
 * The same, plus values of another kind that `by` distinguishes too: these are sent as the tag of the branch and the
 * value.
 */
export function unionWith<By extends string, const V extends Readonly<Record<string, Variant>>, B>(
  name: string,
  by: By,
  variants: V,
  branch: Branch & { readonly of: Kind<B> },
): Kind<UnionOf<By, V> | B> {
  return kind({ is: 'union', name, by, variants, branches: [branch] });
}

/** Converts decoded values, where the object differs from the wire form. `from` is the inverse of `to`. */
export function mapped<P, T>(of: Kind<P>, to: (plain: P) => T, from: (value: T) => P): Kind<T> {
  return kind({ is: 'mapped', of, to, from });
}

/** One of two kinds that are distinguished by their lists, because they have no tags. */
export function choice<A, B>(
  first: Kind<A>,
  second: Kind<B>,
  { ofValue, ofRaw }: { readonly ofValue: (value: A | B) => 0 | 1; readonly ofRaw: (raw: readonly unknown[]) => 0 | 1 },
): Kind<A | B> {
  return kind({ is: 'choice', of: [first, second], ofValue, ofRaw });
}

/** A part that refuses unknown fields inside a message that skips them: for example, a command in a request. */
export function sealed<T>(of: Kind<T>): Kind<T> {
  return kind({ is: 'sealed', of });
}

/** A kind that contains itself; `depthMax` bounds how often. */
export function recursive<T>(name: string, depthMax: number, of: () => Kind<T>): Kind<T> {
  return kind({ is: 'recursive', name, depthMax, of });
}

/** `description` and `samples` replace what a declaration would contain. */
export function byHand<T>(
  name: string,
  codec: HandCodec<T>,
  { description, samples }: { readonly description: string; readonly samples: () => readonly T[] },
): Kind<T> {
  return kind({ is: 'byHand', name, description, codec: codec as HandCodec<never>, samples });
}
