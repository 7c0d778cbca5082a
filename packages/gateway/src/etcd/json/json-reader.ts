/**
 * Reads JSON (RFC 8259) so that no number loses digits: ids of leases take 63 bits, and clients send them as bare
 * numbers. The parser of the language rounds them.
 *
 * JR1. A number keeps its text. Of fields with one name, the last one counts, as in Go.
 * JR2. Nesting is bounded, so a reader of the result cannot exhaust the stack. The number of values is bounded, because
 *      an empty object takes a hundred times the memory of its text. A string of any length takes no stack.
 */
export type JsonValue = null | boolean | string | JsonNumber | readonly JsonValue[] | JsonFields;

type JsonFields = ReadonlyMap<string, JsonValue>;

export class JsonNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** A transaction that is nested as deep as the limit allows (`ETCD_LIMITS.txnDepthMax`) has about 50 levels. */
export const JSON_LEVELS_MAX = 64;

/**
 * Values of all kinds in one body, names not counted. A transaction with as many operations as the limits allow has
 * some thousands.
 */
export const JSON_VALUES_MAX = 100_000;

/** Returns all values of the text, which may follow each other with or without space. @throws {SyntaxError} */
export function readJsonValues(text: string): readonly JsonValue[] {
  const reader = new Reader(text);
  const values: JsonValue[] = [];
  while (!reader.atEnd()) values.push(reader.value(0));
  return values;
}

/** Returns the first value of the text, as Go's decoder does; undefined if there is none. @throws {SyntaxError} */
export function readJsonValue(text: string): JsonValue | undefined {
  const reader = new Reader(text);
  return reader.atEnd() ? undefined : reader.value(0);
}

const SPACE = /[ \t\n\r]*/y;
const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const WORDS: ReadonlyMap<string, null | boolean> = new Map([
  ['null', null],
  ['true', true],
  ['false', false],
]);

class Reader {
  readonly #text: string;
  #at = 0;
  #values = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Whether nothing but space is left. */
  atEnd(): boolean {
    this.#match(SPACE);
    return this.#at >= this.#text.length;
  }

  value(depth: number): JsonValue {
    if (depth > JSON_LEVELS_MAX)
      throw new SyntaxError(`nested more than ${JSON_LEVELS_MAX} levels deep; reduce its depth`);
    if (++this.#values > JSON_VALUES_MAX) {
      throw new SyntaxError(`more than ${JSON_VALUES_MAX} values; divide the request`);
    }
    this.#match(SPACE);
    switch (this.#text[this.#at]) {
      case '{':
        return this.#fields(depth);
      case '[':
        return this.#list(depth);
      case '"':
        return this.#string();
      default:
        return this.#scalar();
    }
  }

  #fields(depth: number): JsonFields {
    const fields = new Map<string, JsonValue>();
    this.#at++;
    if (this.#take('}')) return fields;
    for (;;) {
      this.#match(SPACE);
      if (this.#text[this.#at] !== '"') throw this.#unexpected('a name in quotes');
      const name = this.#string();
      if (!this.#take(':')) throw this.#unexpected('a colon');
      fields.set(name, this.value(depth + 1));
      if (this.#take('}')) return fields;
      if (!this.#take(',')) throw this.#unexpected('a comma or the end of the object');
    }
  }

  #list(depth: number): readonly JsonValue[] {
    const items: JsonValue[] = [];
    this.#at++;
    if (this.#take(']')) return items;
    for (;;) {
      items.push(this.value(depth + 1));
      if (this.#take(']')) return items;
      if (!this.#take(',')) throw this.#unexpected('a comma or the end of the list');
    }
  }

  /** The parser of the language checks escapes. */
  #string(): string {
    const from = this.#at;
    let end = from;
    do {
      end = this.#text.indexOf('"', end + 1);
      if (end < 0) throw new SyntaxError(`the string at position ${from} has no end`);
    } while (this.#isEscaped(end));
    this.#at = end + 1;
    try {
      return JSON.parse(this.#text.slice(from, this.#at)) as string;
    } catch {
      throw new SyntaxError(`the string at position ${from} has a wrong escape or a control character`);
    }
  }

  /** Whether an odd number of backslashes is before the character. */
  #isEscaped(at: number): boolean {
    let before = at;
    while (this.#text[before - 1] === '\\') before--;
    return (at - before) % 2 === 1;
  }

  #scalar(): JsonValue {
    const number = this.#match(NUMBER);
    if (number !== undefined) return new JsonNumber(number);
    for (const [word, value] of WORDS) {
      if (!this.#text.startsWith(word, this.#at)) continue;
      this.#at += word.length;
      return value;
    }
    throw this.#unexpected('a value');
  }

  /** Passes over space and the character, if that comes next. */
  #take(character: string): boolean {
    this.#match(SPACE);
    if (this.#text[this.#at] !== character) return false;
    this.#at++;
    return true;
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at;
    const [found] = pattern.exec(this.#text) ?? [];
    if (found !== undefined) this.#at += found.length;
    return found;
  }

  #unexpected(wanted: string): SyntaxError {
    const found = this.#text[this.#at];
    const what = found === undefined ? 'the end' : JSON.stringify(found);
    return new SyntaxError(`expected ${wanted} at position ${this.#at}, found ${what}`);
  }
}
