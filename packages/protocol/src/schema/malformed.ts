import { ServiceError } from '@remora/base';

/** Longer text is not shown in errors. */
const SHOWN_CHARACTERS_MAX = 60;

/** A value from outside that does not match its declaration; the message names the field and the value. */
export class MalformedMessage extends ServiceError {
  readonly #problem: string;
  readonly #path: readonly string[];

  constructor(problem: string, path: readonly string[] = []) {
    super(
      'INVALID_ARGUMENT',
      path.length === 0 ? `malformed message: ${problem}` : `malformed ${path.join('.')}: ${problem}`,
    );
    this.#problem = problem;
    this.#path = path;
  }

  /** The same error, in the field `name` of the enclosing value. */
  within(name: string): MalformedMessage {
    return new MalformedMessage(this.#problem, [name, ...this.#path]);
  }
}

export function malformed(expected: string, raw: unknown): MalformedMessage {
  return new MalformedMessage(`expected ${expected}, found ${describe(raw)}`);
}

/** Adds the name of the struct or the field to an error from inside it. */
export function within(error: unknown, name: string): unknown {
  return error instanceof MalformedMessage ? error.within(name) : error;
}

function describe(raw: unknown): string {
  if (typeof raw === 'string')
    return raw.length > SHOWN_CHARACTERS_MAX ? `text of ${raw.length} characters` : JSON.stringify(raw);
  if (Array.isArray(raw)) return `a list of ${raw.length}`;
  if (raw instanceof Uint8Array) return `${raw.length} bytes`;
  if (typeof raw === 'object') return raw === null ? 'null' : 'an object';
  return typeof raw === 'function' ? 'a function' : String(raw);
}
