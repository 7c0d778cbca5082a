import { createInterface } from 'node:readline/promises';
import { type ErrorCode, escapeHidden, OptionsError, ServiceError } from '@remora/base';
import { CommanderError } from 'commander';
import { CommandError, type ExitName, exitCode } from './exit-codes.ts';

/** What a command sees of the process that it runs in. */
export interface Shell {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Results: what a script reads. */
  out(text: string): void;
  /** A result that is not text of ours, and not a line: its very bytes. */
  raw(bytes: string | Uint8Array): void;
  /** Everything else: progress, hints, errors. */
  err(text: string): void;
  /** Whether results are shown by a terminal. */
  readonly shown: boolean;
  /** Whether a person looks on and can be asked. */
  readonly terminal: boolean;
  /** Asks the person; the answer is one line, undefined when there is none. */
  ask(question: string): Promise<string | undefined>;
}

export const processShell: Shell = {
  env: process.env,
  out: (text) => process.stdout.write(`${text}\n`),
  raw: (bytes) => process.stdout.write(bytes),
  err: (text) => process.stderr.write(`${text}\n`),
  shown: process.stdout.isTTY,
  terminal: process.stdin.isTTY && process.stdout.isTTY,
  ask: askPerson,
};

/** What texts of our own are laid out with. */
const LAYOUT = '\n\t';

/**
 * A shell whose terminal acts upon nothing that others said, whichever command prints it. Names and values in texts are
 * escaped where they are put in (format/bytes-text.ts), as here line ends have to stay; JSON stays the same value.
 */
export function guarded(shell: Shell): Shell {
  return {
    ...shell,
    out: (text) => shell.out(escapeHidden(text, LAYOUT)),
    err: (text) => shell.err(escapeHidden(text, LAYOUT)),
    ask: (question) => shell.ask(escapeHidden(question, LAYOUT)),
  };
}

/**
 * Whoever read what is printed has gone, as in `remora … | head -1`: the process ends, in good order where it has
 * something to give back.
 */
export function endWhenNobodyReads(out: NodeJS.WriteStream): void {
  out.on('error', (error: NodeJS.ErrnoException) => {
    if (!GONE.has(error.code)) throw error;
    process.kill(process.pid, 'SIGTERM');
  });
}

/** Of a pipe whose reader has gone, and of a terminal that was closed. */
const GONE: ReadonlySet<string | undefined> = new Set(['EPIPE', 'EIO']);

/**
 * What is said to people may be lost, and nothing else with it: a process that ended for that would leave the command
 * that it runs under a lock running without one (commands/run-child.ts K1).
 */
export function goOnWhenNobodyListens(err: NodeJS.WriteStream): void {
  err.on('error', () => {});
}

async function askPerson(question: string): Promise<string | undefined> {
  const lines = createInterface({ input: process.stdin, output: process.stderr });
  const over = new Promise<undefined>((resolve) => {
    lines.once('close', () => resolve(undefined));
  });
  try {
    return await Promise.race([lines.question(question), over]);
  } finally {
    lines.close();
  }
}

/** Of those that are told apart from a refusal. */
const EXIT_OF: Partial<Record<ErrorCode, ExitName>> = {
  UNAVAILABLE: 'unavailable',
  DEADLINE_EXCEEDED: 'unavailable',
  UNKNOWN_OUTCOME: 'unknown',
  RESULT_LOST: 'unknown',
};

/** Says what went wrong, briefly when it was expected, and gives the exit code. */
export function reportFailure(error: unknown, shell: Shell): number {
  // Commander has written its own message by now.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCode('usage');
  if (error instanceof OptionsError) {
    for (const { source, message } of error.problems) shell.err(`remora: ${source}: ${message}`);
    return exitCode('usage');
  }
  if (error instanceof CommandError) {
    shell.err(`remora: ${error.message}`);
    return exitCode(error.exit);
  }
  if (error instanceof ServiceError) {
    shell.err(`remora: ${escapeHidden(error.message)} (${error.code})`);
    return exitCode(EXIT_OF[error.code] ?? 'failed');
  }
  shell.err(`remora: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  return exitCode('internal');
}

/** A signal that aborts when the process is asked to stop: by Ctrl-C, by a supervisor, or when its supervisor dies. */
export function stopSignal(): { readonly signal: AbortSignal; dispose(): void } {
  const controller = new AbortController();
  const onSignal = (name: NodeJS.Signals) => controller.abort(name);
  const onOrphaned = () => controller.abort('the supervisor has exited');
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const name of names) process.on(name, onSignal);
  // A supervisor holds the other end of the channel; it closes with it, even on SIGKILL.
  if (process.connected) process.on('disconnect', onOrphaned);
  return {
    signal: controller.signal,
    dispose() {
      for (const name of names) process.off(name, onSignal);
      process.off('disconnect', onOrphaned);
    },
  };
}

/** Resolves once the signal aborts. */
export function aborted(signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
}
