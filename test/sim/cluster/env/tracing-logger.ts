/**
 * The log of a process is part of a run's trace. A logged fault of the program itself, which the product tolerates,
 * ends the run.
 */
import type { Logger } from '@remora/base';
import { hashOfText } from '../../common/hash.ts';
import type { Trace } from '../../common/trace.ts';

export function tracingLogger(trace: Trace, process: number): Logger {
  const write =
    (level: string) =>
    (fields: Readonly<Record<string, unknown>>, message: string): void => {
      if (level === 'error' && isFault(fields.error)) throw fields.error;
      const text = `${level}: ${message} ${JSON.stringify(fields, plain)}`;
      trace.add('log', process, 0, hashOfText(text), 0, text);
    };
  const logger: Logger = {
    debug() {},
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: () => logger,
  };
  return logger;
}

function isFault(error: unknown): boolean {
  return error instanceof TypeError || error instanceof RangeError;
}

function plain(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return value.toString();
  return value instanceof Error ? value.message : value;
}
