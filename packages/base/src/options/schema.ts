import type { OptionType } from './types.ts';

/**
 * One option. With a `default` it always has a value; with `required` the user must set it; with neither it may be
 * absent, and is then `undefined`.
 */
export interface OptionDefinition<T> {
  readonly type: OptionType<T>;
  readonly default?: T;
  readonly required?: true;
  /** What the option does, in a sentence or two; with a warning about changes. */
  readonly desc: string;
  /** Heading under which `--help` lists it. */
  readonly group?: string;
}

export type Definitions = Readonly<Record<string, OptionDefinition<unknown>>>;

type ValueOf<D> = D extends { readonly type: OptionType<infer T> } ? T : never;

/** The values that a schema describes. */
export type OptionValues<D extends Definitions> = {
  readonly [K in keyof D]: D[K] extends { readonly default: unknown } | { readonly required: true }
    ? ValueOf<D[K]>
    : ValueOf<D[K]> | undefined;
};

/** A condition that ties several options together, checked once all of them are known. */
export interface Relation<D extends Definitions> {
  /** The options of the condition; the first one is reported. */
  readonly between: readonly (keyof D & string)[];
  holds(values: OptionValues<D>): boolean;
  /** Completes "--first must ...". */
  readonly must: string;
}

/** Everything about a process's options, in one place. */
export interface OptionsSchema<D extends Definitions> {
  /** The prefix of every environment variable: `REMORA` leads to `REMORA_DATA_DIR`. */
  readonly envPrefix: string;
  readonly definitions: D;
  readonly relations: readonly Relation<D>[];
}

/** The values of a schema: `Options<typeof nodeSchema>`. */
export type Options<S> = S extends OptionsSchema<infer D> ? OptionValues<D> : never;

/** Declares a schema; the compiler checks each default against its type. */
export function defineOptions<const D extends Definitions>(schema: {
  readonly envPrefix: string;
  readonly definitions: D & { readonly [K in keyof D]: { readonly default?: NoInfer<ValueOf<D[K]>> } };
  readonly relations?: readonly Relation<NoInfer<D>>[];
}): OptionsSchema<D> {
  return { envPrefix: schema.envPrefix, definitions: schema.definitions, relations: schema.relations ?? [] };
}

/** `dataDir` as a flag (without dashes) and as a key of a configuration file: `data-dir`. */
export function kebabName(option: string): string {
  return option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** `dataDir` as an environment variable: `REMORA_DATA_DIR`. */
export function envName(envPrefix: string, option: string): string {
  return `${envPrefix}_${kebabName(option).replaceAll('-', '_').toUpperCase()}`;
}
