import { ServiceError, suggest } from '@remora/base';

/**
 * Options are an object, and have known names: one that is misspelt would leave a caller without types waiting for ever.
 *
 * @throws ServiceError INVALID_ARGUMENT for anything else.
 */
export function requireOptions(options: object, what: string, known: ReadonlySet<string>): void {
  if (typeof options !== 'object' || options === null) {
    const got = options === null ? 'null' : typeof options;
    throw new ServiceError(
      'INVALID_ARGUMENT',
      `the options of ${what} are an object, such as { ${example(known)} }, not ${got}`,
    );
  }
  for (const name in options) {
    if (known.has(name)) continue;
    const meant = suggest(name, known);
    const hint = meant === undefined ? `there is ${[...known].join(', ')}` : `did you mean ${meant}?`;
    throw new ServiceError('INVALID_ARGUMENT', `${what} has no option ${name}; ${hint}`);
  }
}

/** @throws ServiceError INVALID_ARGUMENT for anything but text by text. */
export function requireAttributes(attributes: Readonly<Record<string, string>>): void {
  if (typeof attributes === 'object' && attributes !== null) {
    const wrong = Object.entries(attributes).find(([, value]) => typeof value !== 'string');
    if (wrong === undefined) return;
    throw new ServiceError('INVALID_ARGUMENT', `attributes: text, but '${wrong[0]}' is ${typeof wrong[1]}`);
  }
  throw new ServiceError('INVALID_ARGUMENT', 'attributes: an object of texts');
}

interface Bounds {
  readonly min: number;
  readonly max: number;
}

/** @throws ServiceError INVALID_ARGUMENT for anything but a whole number within the bounds. */
export function requireCount(count: number, what: string, { min, max }: Bounds): number {
  if (Number.isSafeInteger(count) && count >= min && count <= max) return count;
  throw new ServiceError(
    'INVALID_ARGUMENT',
    `${what}: a whole number from ${min} to ${max}, not ${typeof count === 'string' ? `'${count}'` : String(count)}`,
  );
}

const EXAMPLES: readonly (readonly [name: string, example: string])[] = [
  ['endpoints', "endpoints: '127.0.0.1:7480'"],
  ['wait', "wait: '5s'"],
  ['ttl', "ttl: '30s'"],
  ['namespace', "namespace: 'orders'"],
  ['timeout', "timeout: '5s'"],
];

function example(known: ReadonlySet<string>): string {
  return EXAMPLES.find(([name]) => known.has(name))?.[1] ?? [...known].join(', ');
}

/** The names of a type's fields, all of them. */
export function namesOf<T>(names: Readonly<Record<keyof T & string, true>>): ReadonlySet<string> {
  return new Set(Object.keys(names));
}
