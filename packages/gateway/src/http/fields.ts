import { type Bytes, fromJsonBytes, parseDurationMs, ServiceError, suggest } from '@remora/base';

/**
 * The fields of one JSON object, read one by one. Errors name the field.
 *
 * F1. No field is ignored silently: `end` refuses fields that were not read.
 */
export class Fields {
  readonly #where: string;
  readonly #values: Readonly<Record<string, unknown>>;
  readonly #known = new Set<string>();

  /** `where` precedes the names of fields in messages: empty, or `checks[2].`. */
  constructor(value: unknown, where = '') {
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw invalid(`${where === '' ? 'the body' : where.slice(0, -1)} must be a JSON object`);
    }
    this.#where = where;
    this.#values = value as Readonly<Record<string, unknown>>;
  }

  text(name: string): string | undefined {
    return this.#read(name, 'text', (value) => (typeof value === 'string' ? value : undefined));
  }

  shortText(name: string, lengthMax: number): string | undefined {
    return this.#read(name, `text of 1 to ${lengthMax} characters`, (value) =>
      typeof value === 'string' && value.length > 0 && value.length <= lengthMax ? value : undefined,
    );
  }

  flag(name: string): boolean {
    return this.#read(name, 'true or false', (value) => (typeof value === 'boolean' ? value : undefined)) ?? false;
  }

  /** Without bounds, the code that uses the value checks it. */
  integer(name: string, { min, max }: Bounds = ANY): number | undefined {
    const expected = `a whole number from ${min} to ${max}`;
    return this.#read(name, expected, (value) =>
      typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max ? value : undefined,
    );
  }

  /** A number of ms, or text with units. */
  durationMs(name: string, { min, max }: Bounds): number | undefined {
    const expected = `a time from ${min} to ${max} ms: "5s", "1m30s", or a number of ms`;
    return this.#read(name, expected, (value) => {
      const ms = typeof value === 'string' ? parseDurationMs(value) : value;
      return typeof ms === 'number' && ms >= min && ms <= max ? Math.round(ms) : undefined;
    });
  }

  /** Text, or `{"base64": "…"}` for bytes that are not UTF-8. */
  bytes(name: string): Bytes | undefined {
    return this.#read(name, 'text, or {"base64": "…"}', fromJsonBytes);
  }

  object(name: string): Fields | undefined {
    const value = this.#read(name, 'an object', (given) =>
      typeof given === 'object' && !Array.isArray(given) ? given : undefined,
    );
    return value === undefined ? undefined : new Fields(value, `${this.#where}${name}.`);
  }

  list(name: string): readonly Fields[] | undefined {
    const items = this.#read(name, 'a list', (value) => (Array.isArray(value) ? value : undefined));
    return items?.map((item, i) => new Fields(item, `${this.#where}${name}[${i}].`));
  }

  textMap(name: string): Readonly<Record<string, string>> | undefined {
    return this.#read(name, 'an object of texts', (value) =>
      typeof value === 'object' &&
      !Array.isArray(value) &&
      Object.values(value as object).every((text) => typeof text === 'string')
        ? (value as Record<string, string>)
        : undefined,
    );
  }

  isThere(name: string): boolean {
    return Object.hasOwn(this.#values, name);
  }

  /** Allows fields of an earlier answer that a client may send back; they are ignored. */
  ignored(...names: readonly string[]): this {
    for (const name of names) this.#known.add(name);
    return this;
  }

  required<T>(name: string, value: T | undefined): T {
    if (value !== undefined) return value;
    throw invalid(`${this.#where}${name} is missing`);
  }

  /** F1 */
  end(): void {
    for (const name of Object.keys(this.#values)) {
      if (this.#known.has(name)) continue;
      const meant = suggest(name, this.#known);
      const hint = meant === undefined ? `known fields are ${[...this.#known].join(', ')}` : `did you mean ${meant}?`;
      throw invalid(`unknown field ${this.#where}${name.slice(0, NAME_SHOWN_MAX)}; ${hint}`);
    }
  }

  #read<T>(name: string, expected: string, read: (value: unknown) => T | undefined): T | undefined {
    this.#known.add(name);
    const value = Object.hasOwn(this.#values, name) ? this.#values[name] : undefined;
    if (value === undefined || value === null) return undefined;
    const result = read(value);
    if (result === undefined) throw invalid(`${this.#where}${name}: expected ${expected}`);
    return result;
  }
}

interface Bounds {
  readonly min: number;
  readonly max: number;
}

const ANY: Bounds = { min: Number.MIN_SAFE_INTEGER, max: Number.MAX_SAFE_INTEGER };
const NAME_SHOWN_MAX = 64;

export function invalid(message: string, details?: Readonly<Record<string, unknown>>): ServiceError {
  return new ServiceError('INVALID_ARGUMENT', message, details === undefined ? {} : { details });
}
