/** The result of reading one value: the value, or a text that follows "expected" in the error. */
export type Reading<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly expected: string };

/** How one option's value is written, read and shown. Every type can read what it shows. */
export interface OptionType<T> {
  /** Stands for the value in usage lines: `--data-dir <path>`. Empty for a switch, which needs no value. */
  readonly placeholder: string;
  /** Reads the text of a flag or of an environment variable. */
  parse(text: string): Reading<T>;
  /** Reads a value of a parsed YAML or JSON file. */
  fromFile(value: unknown): Reading<T>;
  show(value: T): string;
}

export interface Limits {
  readonly min?: number;
  readonly max?: number;
}

/** A whole number. */
export function int(limits: Limits = {}): OptionType<number> {
  const expected = `a whole number${limitsText(limits, String)}`;
  return numeric('<number>', expected, limits, String, (text) =>
    /^[+-]?\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined,
  );
}

export function float(limits: Limits = {}): OptionType<number> {
  const expected = `a number${limitsText(limits, String)}`;
  return numeric('<number>', expected, limits, String, (text) =>
    /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) && Number.isFinite(Number(text)) ? Number(text) : undefined,
  );
}

/** A switch. A flag without a value turns it on; text may be true, false, yes, no, on, off, 1 or 0. */
export function bool(): OptionType<boolean> {
  const words = new Map([
    ['true', true],
    ['yes', true],
    ['on', true],
    ['1', true],
    ['', true],
    ['false', false],
    ['no', false],
    ['off', false],
    ['0', false],
  ]);
  const parse = (text: string): Reading<boolean> => {
    const value = words.get(text.trim().toLowerCase());
    return value === undefined ? { ok: false, expected: 'true or false' } : { ok: true, value };
  };
  return {
    placeholder: '',
    parse,
    fromFile: (value) =>
      typeof value === 'boolean'
        ? { ok: true, value }
        : parse(typeof value === 'string' ? value : JSON.stringify(value)),
    show: String,
  };
}

export interface StringRules {
  readonly placeholder?: string;
  readonly maxLength?: number;
  /** A pattern for the whole text, and its description: "letters, digits and dashes". */
  readonly pattern?: { readonly regex: RegExp; readonly says: string };
}

/** Text that is not empty. */
export function string(rules: StringRules = {}): OptionType<string> {
  const { maxLength = 4096, pattern } = rules;
  const expected = `${pattern?.says ?? 'non-empty text'}, at most ${maxLength} characters`;
  const parse = (text: string): Reading<string> =>
    text.length > 0 && text.length <= maxLength && (pattern === undefined || pattern.regex.test(text))
      ? { ok: true, value: text }
      : { ok: false, expected };
  return {
    placeholder: rules.placeholder ?? '<text>',
    parse,
    fromFile: (value) =>
      typeof value === 'string' || typeof value === 'number' ? parse(String(value)) : { ok: false, expected },
    show: (value) => value,
  };
}

/** One of a closed set of words. */
export function oneOf<const W extends string>(words: readonly W[]): OptionType<W> {
  const expected = `one of ${words.join(', ')}`;
  const parse = (text: string): Reading<W> => {
    const value = words.find((word) => word === text.trim().toLowerCase());
    return value === undefined ? { ok: false, expected } : { ok: true, value };
  };
  return {
    placeholder: `<${words.join('|')}>`,
    parse,
    fromFile: (value) => (typeof value === 'string' ? parse(value) : { ok: false, expected }),
    show: (value) => value,
  };
}

export interface ListRules {
  readonly minLength?: number;
  readonly maxLength?: number;
}

/** Values of one type, separated by commas; a list in a file. Repeating a flag adds to the list. */
export function list<T>(type: OptionType<T>, rules: ListRules = {}): OptionType<readonly T[]> {
  const { minLength = 0, maxLength = 1000 } = rules;
  const collect = (items: readonly unknown[], read: (item: unknown) => Reading<T>): Reading<readonly T[]> => {
    const values: T[] = [];
    for (const item of items) {
      const reading = read(item);
      if (!reading.ok) return { ok: false, expected: `${reading.expected} instead of ${JSON.stringify(item)}` };
      values.push(reading.value);
    }
    if (values.length >= minLength && values.length <= maxLength) return { ok: true, value: values };
    const count = values.length < minLength ? `at least ${minLength}` : `at most ${maxLength}`;
    return { ok: false, expected: `a list of ${count} values` };
  };
  const parse = (text: string): Reading<readonly T[]> => {
    const items = text.split(',').map((item) => item.trim());
    return collect(
      items.filter((item) => item !== ''),
      (item) => type.parse(String(item)),
    );
  };
  return {
    placeholder: `${type.placeholder},...`,
    parse,
    fromFile: (value) =>
      Array.isArray(value)
        ? collect(value, (item) => type.fromFile(item))
        : typeof value === 'string'
          ? parse(value)
          : { ok: false, expected: 'a list' },
    show: (values) => values.map((value) => type.show(value)).join(','),
  };
}

/** Milliseconds per unit, largest first. */
const DURATION_UNITS = [
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1000],
  ['ms', 1],
] as const;

/** A duration in milliseconds, written with a unit: 100ms, 5s, 1.5h, 1m30s. Only 0 needs none. */
export function durationMs(limits: Limits = {}): OptionType<number> {
  const expected = `a duration such as 100ms, 5s or 2m${limitsText(limits, formatDurationMs)}`;
  return numeric('<duration>', expected, limits, formatDurationMs, parseDurationMs, false);
}

/** The milliseconds that `5s`, `100ms` or `1m30s` stand for; undefined for anything else. */
export function parseDurationMs(text: string): number | undefined {
  if (text === '0') return 0;
  if (!/^(\d+(\.\d+)?(ms|s|m|h|d))+$/.test(text)) return undefined;
  let sum = 0;
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) {
    const scale = DURATION_UNITS.find(([name]) => name === unit)?.[1] ?? 0;
    sum += Number(amount) * scale;
  }
  return sum <= Number.MAX_SAFE_INTEGER ? sum : undefined;
}

/** Writes milliseconds in the largest unit that leaves no fraction. */
export function formatDurationMs(ms: number): string {
  if (ms === 0) return '0';
  const unit = DURATION_UNITS.find(([, scale]) => ms % scale === 0);
  return unit === undefined ? `${ms}ms` : `${ms / unit[1]}${unit[0]}`;
}

/** Bytes per unit, largest first. */
const BYTE_UNITS = [
  ['TiB', 2 ** 40],
  ['GiB', 2 ** 30],
  ['MiB', 2 ** 20],
  ['KiB', 2 ** 10],
  ['TB', 1e12],
  ['GB', 1e9],
  ['MB', 1e6],
  ['KB', 1e3],
  ['B', 1],
] as const;

/** A number of bytes: 64MiB, 1.5GiB, 500KB or a plain number. */
export function bytes(limits: Limits = {}): OptionType<number> {
  const expected = `a size such as 512KiB, 64MiB or 1GiB${limitsText(limits, formatBytes)}`;
  return numeric('<size>', expected, limits, formatBytes, parseBytes);
}

function parseBytes(text: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*([KMGT]i?B|B)?$/i.exec(text);
  if (match === null) return undefined;
  const unit = (match[2] ?? 'B').toLowerCase();
  const scale = BYTE_UNITS.find(([name]) => name.toLowerCase() === unit)?.[1] ?? 1;
  const value = Number(match[1]) * scale;
  return Number.isSafeInteger(value) ? value : undefined;
}

/** Writes bytes in the largest binary unit that leaves at most one decimal. */
export function formatBytes(value: number): string {
  for (const [name, scale] of BYTE_UNITS) {
    if (name.endsWith('iB') && value >= scale && (value * 10) % scale === 0) return `${value / scale}${name}`;
  }
  return `${value}B`;
}

/** A host with a port: `10.0.0.7:7481`, `db1.example:7481`, `[::1]:7481`. */
export interface Address {
  readonly host: string;
  readonly port: number;
}

export function address(): OptionType<Address> {
  const expected = 'an address as host:port, such as 127.0.0.1:7480 or [::1]:7480';
  const parse = (text: string): Reading<Address> => {
    const value = parseAddress(text);
    if (value !== undefined) return { ok: true, value };
    return { ok: false, expected: text.includes('://') ? `${expected}, without a scheme` : expected };
  };
  return {
    placeholder: '<host:port>',
    parse,
    fromFile: (value) => (typeof value === 'string' ? parse(value) : { ok: false, expected }),
    show: formatAddress,
  };
}

/** Reads `host:port`, IPv6 hosts in brackets; undefined for anything else, or a port outside 1 to 65535. */
export function parseAddress(text: string): Address | undefined {
  const match = /^(?:\[([0-9a-fA-F:.%\w]+)\]|([^\s:[\]/,=@?#]+)):(\d{1,5})$/.exec(text.trim());
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  return host === undefined || port < 1 || port > 65_535 ? undefined : { host, port };
}

export function formatAddress({ host, port }: Address): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`;
}

/** The types whose values are numbers; `plainInFile` says whether a file may contain the number itself. */
function numeric(
  placeholder: string,
  expected: string,
  { min = Number.NEGATIVE_INFINITY, max = Number.POSITIVE_INFINITY }: Limits,
  show: (value: number) => string,
  read: (text: string) => number | undefined,
  plainInFile = true,
): OptionType<number> {
  const parse = (text: string): Reading<number> => {
    const value = read(text.trim());
    return value !== undefined && value >= min && value <= max ? { ok: true, value } : { ok: false, expected };
  };
  return {
    placeholder,
    parse,
    fromFile: (value) => {
      const readable = typeof value === 'string' || (typeof value === 'number' && (plainInFile || value === 0));
      return readable ? parse(String(value)) : { ok: false, expected };
    },
    show,
  };
}

function limitsText({ min, max }: Limits, show: (value: number) => string): string {
  if (min !== undefined && max !== undefined) return ` from ${show(min)} to ${show(max)}`;
  if (min !== undefined) return `, at least ${show(min)}`;
  return max === undefined ? '' : `, at most ${show(max)}`;
}
