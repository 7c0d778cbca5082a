/** Source text, parsed just far enough for checks: without comments, and with strings separated from code. */
export interface ScannedSource {
  /** Only the code: comments and the contents of strings and regular expressions are replaced by spaces. */
  readonly code: string;
  /** What it imports, re-exports or loads with `import()`. */
  readonly imports: readonly string[];
}

export function scanSource(source: string): ScannedSource {
  const code = new Scanner(source).scan();
  const imports: string[] = [];
  // In `code` a module name is a pair of quotes around spaces. Its text is at the same position in `source`.
  for (const match of code.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*(['"])( *)\1/g)) {
    const quote = match.index + match[0].length - (match[2]?.length ?? 0) - 1;
    imports.push(source.slice(quote, match.index + match[0].length - 1));
  }
  return { code, imports };
}

/** Scans the source once and blanks everything that is not code. All positions stay the same. */
class Scanner {
  readonly #source: string;
  readonly #out: string[];
  #at = 0;

  constructor(source: string) {
    this.#source = source;
    this.#out = [...source.split('')];
  }

  scan(): string {
    this.#code(undefined);
    return this.#out.join('');
  }

  /** Code up to the brace that closes a `${`, or to the end. */
  #code(closing: '}' | undefined): void {
    let depth = 0;
    while (this.#at < this.#source.length) {
      const char = this.#source[this.#at];
      const two = this.#source.slice(this.#at, this.#at + 2);
      if (two === '//') this.#blankTo(this.#indexOrEnd('\n', this.#at));
      else if (two === '/*') this.#blankTo(this.#indexOrEnd('*/', this.#at + 2) + 2);
      else if (char === "'" || char === '"') this.#quoted(char);
      else if (char === '`') this.#template();
      else if (char === '/' && this.#regexMayBegin()) this.#regex();
      else {
        if (char === '{') depth++;
        if (char === '}' && depth-- === 0 && closing !== undefined) return;
        this.#at++;
      }
    }
  }

  #quoted(quote: string): void {
    let end = this.#at + 1;
    while (end < this.#source.length && this.#source[end] !== quote && this.#source[end] !== '\n') {
      end += this.#source[end] === '\\' ? 2 : 1;
    }
    this.#at++;
    this.#blankTo(end);
    this.#at++;
  }

  #template(): void {
    this.#at++;
    while (this.#at < this.#source.length && this.#source[this.#at] !== '`') {
      if (this.#source.startsWith('${', this.#at)) {
        this.#at += 2;
        this.#code('}');
        this.#at++;
      } else this.#blankTo(this.#at + (this.#source[this.#at] === '\\' ? 2 : 1));
    }
    this.#at++;
  }

  #regex(): void {
    let end = this.#at + 1;
    let inClass = false;
    while (end < this.#source.length && this.#source[end] !== '\n' && (inClass || this.#source[end] !== '/')) {
      if (this.#source[end] === '[') inClass = true;
      else if (this.#source[end] === ']') inClass = false;
      end += this.#source[end] === '\\' ? 2 : 1;
    }
    this.#blankTo(end + 1);
  }

  /**
   * After a value a slash divides. After an operator, an opening bracket or a keyword it begins a regular expression.
   */
  #regexMayBegin(): boolean {
    const before = this.#out
      .slice(Math.max(0, this.#at - 40), this.#at)
      .join('')
      .trimEnd();
    return before === '' || /[(,=:[!&|?{};+\-*%<>~^]$|\b(return|typeof|case|of|in)$/.test(before);
  }

  #indexOrEnd(text: string, from: number): number {
    const index = this.#source.indexOf(text, from);
    return index < 0 ? this.#source.length : index;
  }

  #blankTo(end: number): void {
    for (; this.#at < Math.min(end, this.#source.length); this.#at++) {
      if (this.#source[this.#at] !== '\n') this.#out[this.#at] = ' ';
    }
  }
}
