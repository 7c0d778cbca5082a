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

interface Bounds {
  readonly min: number;
  readonly max: number;
}

/** @throws ServiceError INVALID_ARGUMENT for anything but a whole number within the bounds. */
export function requireCount(count: number, what: string, { min, max }: Bounds): number {
  if (Number.isSafeInteger(count) && count >= min && count <= max) return count;
  throw new ServiceError('INVALID_ARGUMENT', `${what}: a whole number from ${min} to ${max}, not ${String(count)}`);
}

function example(known: ReadonlySet<string>): string {
  return known.has('wait') ? "wait: '5s'" : "endpoints: '127.0.0.1:7480'";
}

/** The names of a type's fields, all of them. */
export function namesOf<T>(names: Readonly<Record<keyof T & string, true>>): ReadonlySet<string> {
  return new Set(Object.keys(names));
}
