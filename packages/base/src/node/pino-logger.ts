import { type DestinationStream, type Logger as PinoLogger, pino } from 'pino';
import { LOG_LEVELS, type Logger, type LogLevel } from '../logger.ts';
import { escapeHidden } from '../terminal-text.ts';

export interface PinoLoggerOptions {
  readonly level: LogLevel;
  /** One readable line per record instead of one JSON object. */
  readonly pretty?: boolean;
  /** Where records go: standard error unless given. */
  readonly destination?: { write(line: string): void };
  /** Added to every record. */
  readonly fields?: Readonly<Record<string, unknown>>;
}

/** A logger whose level can be changed while it is used: for itself and for all its children, those of before too. */
export interface LevelledLogger extends Logger {
  level: LogLevel;
}

/**
 * A logger that writes JSON lines (or readable ones); a terminal may show both (`escapeHidden`). It writes
 * synchronously, so records from before a crash are complete. An `Error` under `error` or `err` is written with its
 * stack and its causes. Records that cannot be written are dropped: the reader of a pipe may be gone, and a terminal
 * closed, and the process goes on.
 */
export function createPinoLogger(options: PinoLoggerOptions): LevelledLogger {
  const raw: DestinationStream = options.destination ?? standardError();
  const lineOf = options.pretty ? prettyLine : escapedLine;
  const destination = { write: (line: string) => raw.write(lineOf(line)) };
  const logger = pino(
    {
      level: LOG_LEVELS[0],
      base: options.fields ?? null,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: pino.stdSerializers.err, err: pino.stdSerializers.err },
    },
    destination,
  );
  return new SharedLevelLogger(logger, { least: LOG_LEVELS.indexOf(options.level) });
}

function standardError(): DestinationStream {
  const stream = pino.destination({ fd: 2, sync: true });
  stream.on('error', () => {});
  return stream;
}

/** pino's own children keep the level that their parent had when they were made. */
class SharedLevelLogger implements LevelledLogger {
  readonly #pino: PinoLogger;
  /** The index of the lowest level that is written; shared with the children. */
  readonly #shared: { least: number };

  constructor(logger: PinoLogger, shared: { least: number }) {
    this.#pino = logger;
    this.#shared = shared;
  }

  get level(): LogLevel {
    return LOG_LEVELS[this.#shared.least] ?? 'info';
  }

  set level(level: LogLevel) {
    this.#shared.least = LOG_LEVELS.indexOf(level);
  }

  debug(fields: Readonly<Record<string, unknown>>, message: string): void {
    if (this.#shared.least <= 0) this.#pino.debug(fields, message);
  }

  info(fields: Readonly<Record<string, unknown>>, message: string): void {
    if (this.#shared.least <= 1) this.#pino.info(fields, message);
  }

  warn(fields: Readonly<Record<string, unknown>>, message: string): void {
    if (this.#shared.least <= 2) this.#pino.warn(fields, message);
  }

  error(fields: Readonly<Record<string, unknown>>, message: string): void {
    this.#pino.error(fields, message);
  }

  child(fields: Readonly<Record<string, unknown>>): LevelledLogger {
    return new SharedLevelLogger(this.#pino.child(fields), this.#shared);
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
