import { ServiceError, suggest } from '@remora/base';

/**
 * Checks one argument or option.
 *
 * @throws ServiceError INVALID_ARGUMENT, naming it, for a value that it does not allow.
 */
export type ArgumentCheck = (value: unknown, name: string) => void;

/** One check for each field of a type: a name that is missing, or that the type does not have, does not compile. */
export type ChecksOf<T> = Readonly<Record<keyof T & string, ArgumentCheck>>;

/** The options that one call takes. Each set stands beside the interface that it checks. */
export interface OptionSet {
  /** What the call is called in messages. */
  readonly call: string;
  readonly checks: ReadonlyMap<string, ArgumentCheck>;
}

/** The options of a call, with a check for each field of their type. */
export function optionSet<T>(call: string, checks: ChecksOf<T>): OptionSet {
  return { call, checks: new Map(Object.entries(checks)) };
}

/**
 * Options are an object whose names are known and whose values are valid. An option whose value is `undefined` counts
 * as absent.
 *
 * Programs without types rely on this check: a misspelt `wait` would wait forever, and a misspelt `fence` would write
 * without one.
 *
 * @throws ServiceError INVALID_ARGUMENT for anything else.
 */
export function checkOptions({ call, checks }: OptionSet, options: object): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    const got = options === null ? 'null' : Array.isArray(options) ? 'a list' : typeof options;
    const such = example([...checks.keys()]);
    throw new ServiceError(
      'INVALID_ARGUMENT',
      `the options of ${call}: expected an object, such as { ${such} }, got ${got}`,
    );
  }
  for (const name in options) {
    const check = checks.get(name);
    if (check === undefined) throw unknownOption(name, call, [...checks.keys()]);
    const value: unknown = Reflect.get(options, name);
    if (value !== undefined) check(value, name);
  }
}

function unknownOption(name: string, what: string, known: readonly string[]): ServiceError {
  const meant = suggest(name, known);
  const hint = meant === undefined ? `its options are ${known.join(', ')}` : `did you mean ${meant}?`;
  return new ServiceError('INVALID_ARGUMENT', `${what} has no option ${name}; ${hint}`);
}

/** A wrong value, for an error message. Never throws. */
export function shown(value: unknown): string {
  if (typeof value === 'string') return `'${value.slice(0, SHOWN_MAX)}'`;
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return typeof value === 'object' || typeof value === 'function' ? typeof value : String(value);
}

/** @throws ServiceError INVALID_ARGUMENT for anything but an object whose values are text. */
export function requireAttributes(attributes: Readonly<Record<string, string>>): void {
  if (typeof attributes === 'object' && attributes !== null && !Array.isArray(attributes)) {
    const wrong = Object.entries(attributes).find(([, value]) => typeof value !== 'string');
    if (wrong === undefined) return;
    throw new ServiceError('INVALID_ARGUMENT', `attributes: expected text for '${wrong[0]}', got ${shown(wrong[1])}`);
  }
  throw new ServiceError('INVALID_ARGUMENT', `attributes: expected an object of texts, got ${shown(attributes)}`);
}

const SHOWN_MAX = 64;

interface Bounds {
  readonly min: number;
  readonly max: number;
}

/** @throws ServiceError INVALID_ARGUMENT for anything but a whole number within the bounds, which are inclusive. */
export function requireCount(count: number, what: string, { min, max }: Bounds): number {
  if (Number.isSafeInteger(count) && count >= min && count <= max) return count;
  throw new ServiceError(
    'INVALID_ARGUMENT',
    `${what}: expected a whole number from ${min} to ${max}, got ${shown(count)}`,
  );
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
