import { type DestinationStream, pino } from 'pino';
import type { Logger } from '../logger.ts';
import { escapeHidden } from '../terminal-text.ts';

export const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface PinoLoggerOptions {
  readonly level: LogLevel;
  /** One readable line per record instead of one JSON object. */
  readonly pretty?: boolean;
  /** Where records go: standard error unless given. */
  readonly destination?: { write(line: string): void };
  /** Added to every record. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

/** A logger whose lowest level can change, with that of all its children. */
export interface LeveledLogger extends Logger {
  setLevel(level: LogLevel): void;
}

/**
 * A logger that writes JSON lines (or readable ones); a terminal may show both (`escapeHidden`). It writes
 * synchronously, so records from before a crash are complete. An `Error` under `error` or `err` is written with its
 * stack and its causes. Records that cannot be written are dropped: the reader of a pipe may be gone, and a terminal
 * closed, and the process goes on.
 */
export function createPinoLogger(options: PinoLoggerOptions): LeveledLogger {
  const raw: DestinationStream = options.destination ?? standardError();
  const lineOf = options.pretty ? prettyLine : escapedLine;
  const destination = { write: (line: string) => raw.write(lineOf(line)) };
  const inner = pino(
    {
      level: LOG_LEVELS[0],
      base: options.fields ?? null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: pino.stdSerializers.err, err: pino.stdSerializers.err },
    },
    destination,
  );
  return new Leveled(inner, { rank: LOG_LEVELS.indexOf(options.level) });
}

function standardError(): DestinationStream {
  const stream = pino.destination({ fd: 2, sync: true });
  stream.on('error', () => {});
  return stream;
}

type Inner = pino.Logger<never, boolean>;
type Fields = Readonly<Record<string, unknown>>;
const [DEBUG, INFO, WARN] = [0, 1, 2];

class Leveled implements LeveledLogger {
  readonly #inner: Inner;
  /** Of a logger and all its children: the lowest level that is written, as an index of `LOG_LEVELS`. */
  readonly #lowest: { rank: number };

  constructor(inner: Inner, lowest: { rank: number }) {
    this.#inner = inner;
    this.#lowest = lowest;
  }

  setLevel(level: LogLevel): void {
    this.#lowest.rank = LOG_LEVELS.indexOf(level);
  }

  debug(fields: Fields, message: string): void {
    if (this.#lowest.rank <= DEBUG) this.#inner.debug(fields, message);
  }

  info(fields: Fields, message: string): void {
    if (this.#lowest.rank <= INFO) this.#inner.info(fields, message);
  }

  warn(fields: Fields, message: string): void {
    if (this.#lowest.rank <= WARN) this.#inner.warn(fields, message);
  }

  error(fields: Fields, message: string): void {
    this.#inner.error(fields, message);
  }

  child(fields: Fields): Logger {
    return new Leveled(this.#inner.child(fields), this.#lowest);
  }
}

const HIDDEN = new Set(['time', 'level', 'msg']);

/** JSON itself escapes controls of the first set only. */
function escapedLine(json: string): string {
  return escapeHidden(json, '\n');
}

/**
 * `12:00:00.123 INFO message key=value ...`, with a stack on lines of its own. The text contains names and messages
 * from others, so control characters of terminals are escaped (`escapeHidden`).
 */
export function prettyLine(json: string): string {
  let record: Record<string, unknown>;
  try {
    record = JSON.parse(json);
  } catch {
    return escapedLine(json);
  }
  const stacks: string[] = [];
  const fields: string[] = [];
  for (const [key, value] of Object.entries(record)) {
    if (HIDDEN.has(key)) continue;
    if (isError(value)) {
      fields.push(`${key}=${JSON.stringify(value.message)}`);
      stacks.push(value.stack);
    } else
      fields.push(`${key}=${typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value)}`);
  }
  const time = String(record.time).slice(11, 23);
  const head = `${time} ${String(record.level).toUpperCase().padEnd(5)} ${String(record.msg ?? '')}`;
  const line = escapeHidden(fields.length === 0 ? head : `${head}  ${fields.join(' ')}`);
  const indented = stacks.map((stack) => escapeHidden(stack, '\n').replace(/^/gm, '    '));
  return `${[line, ...indented].join('\n')}\n`;
}

function isError(value: unknown): value is { readonly message: string; readonly stack: string } {
  return typeof value === 'object' && value !== null && 'stack' in value && typeof value.stack === 'string';
}
