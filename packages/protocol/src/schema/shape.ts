/**
 * The parts of a declaration. A declaration is data: it describes a message and does nothing. Encoders and decoders
 * (codec.ts), the samples of the tests and the documentation of the wire are all made from it.
 */

declare const valueType: unique symbol;

/** A declared part of a message; `T` is the type of its values. */
export interface Kind<T> {
  readonly shape: Shape;
  /** For the compiler only: no kind has it at run time. */
  readonly [valueType]?: T;
}

/** The type of the values of a kind. */
export type Infer<K> = K extends Kind<infer T> ? T : never;

export type AnyKind = Kind<unknown>;

/**
 * The place of a field in its struct. `own`: one position of the list, one field of the object. `leftOut`: the same,
 * and an undefined value has no field in the decoded object. `flat`: the positions of its struct are positions of this
 * one. `spread`: one position, whose fields are fields of this object. `flatSpread`: a union whose variants have one
 * field each: its tag and that field are two positions of this list, and its fields are fields of this object.
 */
export type Placing = 'own' | 'leftOut' | 'flat' | 'spread' | 'flatSpread';

/** One field of a struct or of a variant of a union. */
export interface Field<T, P extends Placing = Placing> {
  readonly kind: Kind<T>;
  /** Its meaning, in one or a few sentences. */
  readonly meaning: string;
  readonly placing: P;
  readonly added: Added | undefined;
}

/** For a field that earlier versions do not have. Such fields are the last of their struct. */
export interface Added {
  /** The release that added it. */
  readonly since: string;
  /** The value in a message of an earlier release. A writer omits trailing fields with this value. */
  readonly absent: unknown;
  /** The field is written even with that value. */
  readonly always: boolean;
  /**
   * Why a reader may skip the field without harm. `closed` messages are never skipped over, and have no such reason.
   */
  readonly skippable: string | undefined;
}

export type Fields = Readonly<Record<string, Field<unknown>>>;

export interface StructShape {
  readonly is: 'struct';
  /** Its name in error messages and in the documentation. */
  readonly name: string;
  readonly fields: Fields;
}

export interface Variant<F extends Fields = Fields> {
  readonly tag: number;
  readonly fields: F;
}

/** Values of another union (or struct with the same discriminant), sent as `[tag, value]`. */
export interface Branch {
  readonly tag: number;
  readonly of: AnyKind;
  /** The discriminants of its values. */
  readonly types: readonly string[];
}

export interface UnionShape {
  readonly is: 'union';
  readonly name: string;
  /** The field that distinguishes the variants: `type`, `kind`, … */
  readonly by: string;
  readonly variants: Readonly<Record<string, Variant>>;
  readonly branches: readonly Branch[];
}

/** A hand-written codec, for values that cannot be declared or belong to another package. */
export interface HandCodec<T> {
  encode(value: T): unknown;
  /** Throws `ServiceError` INVALID_ARGUMENT for anything that `encode` cannot have produced. */
  decode(raw: unknown): T;
}

export type Shape =
  | { readonly is: 'uint'; readonly min: number; readonly max: number }
  | { readonly is: 'int' }
  | { readonly is: 'ms' }
  | { readonly is: 'bool' }
  | { readonly is: 'text'; readonly min: number; readonly max: number; readonly pattern: RegExp | undefined }
  | { readonly is: 'bytes' }
  | { readonly is: 'int64'; readonly wide: boolean }
  | { readonly is: 'words'; readonly name: string; readonly words: readonly string[]; readonly asText: boolean }
  | { readonly is: 'flags'; readonly names: readonly string[] }
  | { readonly is: 'textMap' }
  | { readonly is: 'details' }
  | { readonly is: 'nothing' }
  | { readonly is: 'optional'; readonly of: AnyKind }
  | { readonly is: 'list'; readonly of: AnyKind; readonly max: number; readonly distinct: boolean }
  | { readonly is: 'tuple'; readonly name: string; readonly of: readonly AnyKind[] }
  | StructShape
  | UnionShape
  | {
      readonly is: 'mapped';
      readonly of: AnyKind;
      readonly to: (plain: never) => unknown;
      readonly from: (value: never) => unknown;
    }
  | {
      readonly is: 'choice';
      readonly of: readonly [AnyKind, AnyKind];
      /** Tell which of the two a value is, and which a decoded list is. */
      readonly ofValue: (value: never) => 0 | 1;
      readonly ofRaw: (raw: readonly unknown[]) => 0 | 1;
    }
  | { readonly is: 'sealed'; readonly of: AnyKind }
  | { readonly is: 'recursive'; readonly name: string; readonly depthMax: number; readonly of: () => AnyKind }
  | {
      readonly is: 'byHand';
      readonly name: string;
      readonly description: string;
      readonly codec: HandCodec<never>;
      readonly samples: () => readonly unknown[];
    };
