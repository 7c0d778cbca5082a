/** Declarations as a later release may have them: every struct and variant has one more field. */
import { added, field, uint } from '../../src/schema/kinds.ts';
import type { AnyKind, Field, Fields, Shape } from '../../src/schema/shape.ts';

/** What the names of the added fields begin with, and their value in earlier messages. */
const LATER = 'later';
export const ABSENT = 7;

export function evolved(kind: AnyKind): AnyKind {
  return new Evolution().of(kind);
}

class Evolution {
  readonly #done = new Map<Shape, AnyKind>();
  #fields = 0;

  of({ shape }: AnyKind): AnyKind {
    const known = this.#done.get(shape);
    if (known !== undefined) return known;
    const made = { shape: this.#shape(shape) };
    this.#done.set(shape, made);
    return made;
  }

  #shape(shape: Shape): Shape {
    switch (shape.is) {
      case 'optional':
      case 'mapped':
        return { ...shape, of: this.of(shape.of) };
      case 'list':
        return { ...shape, of: this.of(shape.of) };
      case 'choice':
        return { ...shape, of: [this.of(shape.of[0]), this.of(shape.of[1])] };
      case 'recursive':
        return { ...shape, of: () => this.of(shape.of()) };
      case 'struct':
        return { ...shape, fields: this.#grown(shape.fields) };
      case 'union': {
        const variants = Object.entries(shape.variants).map(([type, variant]) => [
          type,
          { ...variant, fields: this.#grown(variant.fields) },
        ]);
        const branches = shape.branches.map((branch) => ({ ...branch, of: this.of(branch.of) }));
        return { ...shape, variants: Object.fromEntries(variants), branches };
      }
      default:
        return shape; // What is sealed in an open message stays as it is.
    }
  }

  #grown(fields: Fields): Fields {
    const name = `${LATER}${this.#fields++}`;
    const last = added(field(uint, 'New.'), { since: '9.0.0', absent: ABSENT, skippable: 'a test' });
    return { ...this.#inner(fields), [name]: last };
  }

  #inner(fields: Fields): Fields {
    return Object.fromEntries(Object.entries(fields).map(([name, one]) => [name, this.#field(one)]));
  }

  /** A flat struct cannot grow, nor a variant of a union that takes two positions; what is in them can. */
  #field(one: Field<unknown>): Field<unknown> {
    const { shape } = one.kind;
    if (one.placing === 'flat' && shape.is === 'struct') {
      return { ...one, kind: { shape: { ...shape, fields: this.#inner(shape.fields) } } };
    }
    if (one.placing === 'flatSpread' && shape.is === 'union') {
      const variants = Object.entries(shape.variants).map(([type, variant]) => [
        type,
        { ...variant, fields: this.#inner(variant.fields) },
      ]);
      return { ...one, kind: { shape: { ...shape, variants: Object.fromEntries(variants) } } };
    }
    return { ...one, kind: this.of(one.kind) };
  }
}

/** A value without the added fields. */
export function withoutLater(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutLater);
  if (value === null || typeof value !== 'object' || value instanceof Uint8Array) return value;
  const kept = Object.entries(value).filter(([name]) => !name.startsWith(LATER));
  return Object.fromEntries(kept.map(([name, one]) => [name, withoutLater(one)]));
}

/** The values of the added fields, of all depths. */
export function laterIn(value: unknown): readonly unknown[] {
  if (value === null || typeof value !== 'object' || value instanceof Uint8Array) return [];
  return Object.entries(value).flatMap(([name, one]) => (name.startsWith(LATER) ? [one] : laterIn(one)));
}
