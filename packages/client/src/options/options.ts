import { ServiceError, suggest } from '@remora/base';

/**
 * Options are an object, with known names and values of their kinds: one that is misspelt would leave a caller without types
 * waiting for ever. `undefined` is as if the option were not there.
 *
 * @throws ServiceError INVALID_ARGUMENT for anything else.
 */
export function requireOptions(
  options: object,
  what: string,
  known: ReadonlyMap<string, (value: unknown, name: string) => void>,
): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    const got = options === null ? 'null' : Array.isArray(options) ? 'a list' : typeof options;
    const such = example([...known.keys()]);
    throw new ServiceError('INVALID_ARGUMENT', `the options of ${what} are an object, such as { ${such} }, not ${got}`);
  }
  for (const name in options) {
    const check = known.get(name);
    if (check === undefined) throw unknownOption(name, what, [...known.keys()]);
    const value: unknown = Reflect.get(options, name);
    if (value !== undefined) check(value, name);
  }
}

function unknownOption(name: string, what: string, known: readonly string[]): ServiceError {
  const meant = suggest(name, known);
  const hint = meant === undefined ? `there is ${known.join(', ')}` : `did you mean ${meant}?`;
  return new ServiceError('INVALID_ARGUMENT', `${what} has no option ${name}; ${hint}`);
}

/** What a caller gave in the place of something else, for a message: never throws. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return `'${value.slice(0, SHOWN_MAX)}'`;
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' || typeof value === 'function' ? typeof value : String(value);
}

/** @throws ServiceError INVALID_ARGUMENT for anything but text by text. */
export function requireAttributes(attributes: Readonly<Record<string, string>>): void {
  if (typeof attributes === 'object' && attributes !== null && !Array.isArray(attributes)) {
    const wrong = Object.entries(attributes).find(([, value]) => typeof value !== 'string');
    if (wrong === undefined) return;
    throw new ServiceError('INVALID_ARGUMENT', `attributes: text, but '${wrong[0]}' is ${typeof wrong[1]}`);
  }
  throw new ServiceError('INVALID_ARGUMENT', 'attributes: an object of texts');
}

const SHOWN_MAX = 64;

interface Bounds {
  readonly min: number;
  readonly max: number;
}

/** @throws ServiceError INVALID_ARGUMENT for anything but a whole number within the bounds. */
export function requireCount(count: number, what: string, { min, max }: Bounds): number {
  if (Number.isSafeInteger(count) && count >= min && count <= max) return count;
  throw new ServiceError('INVALID_ARGUMENT', `${what}: a whole number from ${min} to ${max}, not ${shown(count)}`);
}

const EXAMPLES: readonly (readonly [name: string, example: string])[] = [
  ['endpoints', "endpoints: '127.0.0.1:7480'"],
  ['wait', "wait: '5s'"],
  ['ttl', "ttl: '30s'"],
  ['namespace', "namespace: 'orders'"],
  ['timeout', "timeout: '5s'"],
];

function example(known: readonly string[]): string {
  return EXAMPLES.find(([name]) => known.includes(name))?.[1] ?? known.join(', ');
}

/** The checks of a type's fields, all of them. */
export function checksOf<T>(
  checks: Readonly<Record<keyof T & string, (value: unknown, name: string) => void>>,
): ReadonlyMap<string, (value: unknown, name: string) => void> {
  return new Map(Object.entries(checks));
}
