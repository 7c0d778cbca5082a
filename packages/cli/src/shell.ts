import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import { type ErrorCode, escapeHidden, OptionsError, ServiceError } from '@remora/base';
import { CommanderError } from 'commander';
import { CommandError, type ExitName, exitCode } from './exit-codes.ts';

/** The process as a command uses it. */
export interface Shell {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Results, which scripts read. */
  out(text: string): void;
  /** A result that is not a line of this program's text, byte by byte. */
  raw(bytes: string | Uint8Array): void;
  /** Everything else: progress, hints, errors. */
  err(text: string): void;
  /** Whether a terminal shows the results. */
  readonly shown: boolean;
  /** Whether a person is watching and can be asked. */
  readonly terminal: boolean;
  /** Asks the person; returns one line, or undefined if there is no answer. */
  ask(question: string): Promise<string | undefined>;
  /** Asks for a secret, which is not shown as it is typed; undefined if there is no terminal, or no answer. */
  askSecret(question: string): Promise<string | undefined>;
  /** All of the standard input, as text. */
  input(): Promise<string>;
}

export const processShell: Shell = {
  env: process.env,
  out: (text) => process.stdout.write(`${text}\n`),
  raw: (bytes) => process.stdout.write(bytes),
  err: (text) => process.stderr.write(`${text}\n`),
  shown: process.stdout.isTTY,
  terminal: process.stdin.isTTY && process.stdout.isTTY,
  ask: askPerson,
  askSecret,
  input: async () => (await readStdin()).toString(),
};

export async function readStdin(): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

/** Characters that this program's own texts use for layout. */
const LAYOUT = '\n\t';

/**
 * Wraps a shell so that control characters from others have no effect on the terminal, whichever command prints them.
 * Names and values in texts are escaped where they are inserted (format/bytes-text.ts), because line ends have to stay
 * here; JSON keeps its value.
 */
export function guarded(shell: Shell): Shell {
  return {
    ...shell,
    out: (text) => shell.out(escapeHidden(text, LAYOUT)),
    err: (text) => shell.err(escapeHidden(text, LAYOUT)),
    ask: (question) => shell.ask(escapeHidden(question, LAYOUT)),
    askSecret: (question) => shell.askSecret(escapeHidden(question, LAYOUT)),
  };
}

/**
 * The reader of the output has gone, as in `remora … | head -1`: the process ends, and first releases what it holds.
 */
export function endWhenNobodyReads(out: NodeJS.WriteStream): void {
  out.on('error', (error: NodeJS.ErrnoException) => {
    if (!GONE.has(error.code)) throw error;
    process.kill(process.pid, 'SIGTERM');
  });
}

/** Error codes of a pipe whose reader has gone, and of a terminal that was closed. */
const GONE: ReadonlySet<string | undefined> = new Set(['EPIPE', 'EIO']);

/**
 * Messages to people may be lost, and nothing else with them: if the process ended because of that, the command that it
 * runs under a lock would continue without one (commands/run-child.ts K1).
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

/** The question and the end of the line are shown, and nothing that is typed. */
async function askSecret(question: string): Promise<string | undefined> {
  if (!process.stdin.isTTY) return undefined;
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() });
  const lines = createInterface({ input: process.stdin, output: nowhere, terminal: true, historySize: 0 });
  process.stderr.write(question);
  try {
    return await new Promise((resolve) => {
      lines.once('line', resolve);
      lines.once('close', () => resolve(undefined));
      lines.once('SIGINT', () => lines.close());
    });
  } finally {
    lines.close();
    process.stderr.write('\n');
  }
}

/** Codes with an exit code other than that of a refusal. */
const EXIT_OF: Partial<Record<ErrorCode, ExitName>> = {
  UNAVAILABLE: 'unavailable',
  DEADLINE_EXCEEDED: 'unavailable',
  UNKNOWN_OUTCOME: 'unknown',
  RESULT_LOST: 'unknown',
};

/** What to do about an error on the command line. */
const HINTS: Partial<Record<ErrorCode, string>> = {
  UNAUTHENTICATED: 'Log in with --user NAME and its password, with --token-file, or with --cert and --key.',
  PERMISSION_DENIED: '`remora auth can USER VERB TARGET` shows what to grant.',
};

/** Prints what went wrong, briefly if it was expected, and returns the exit code. */
export function reportFailure(error: unknown, shell: Shell): number {
  // Commander has already printed its own message.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : exitCode('usage');
  if (error instanceof OptionsError) {
    for (const { source, message } of error.problems) shell.err(`remora: ${source}: ${message}`);
    return exitCode('usage');
  }
  if (error instanceof CommandError) {
    shell.err(`remora: ${error.message}`);
    return error.code;
  }
  if (error instanceof ServiceError) {
    shell.err(`remora: ${escapeHidden(error.message)} (${error.code})`);
    const hint = HINTS[error.code];
    if (hint !== undefined) shell.err(hint);
    return exitCode(EXIT_OF[error.code] ?? 'failed');
  }
  shell.err(`remora: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  return exitCode('internal');
}

/**
 * Returns a signal that aborts when the process is asked to stop: by Ctrl-C, by a supervisor, or when its supervisor
 * dies. SIGHUP does not stop it if `onHangUp` returns true.
 */
export function stopSignal(onHangUp: () => boolean = () => false): {
  readonly signal: AbortSignal;
  dispose(): void;
} {
  const controller = new AbortController();
  const onSignal = (name: NodeJS.Signals): void => {
    if (name !== 'SIGHUP' || !onHangUp()) controller.abort(name);
  };
  const onOrphaned = () => controller.abort('the supervisor has exited');
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;
  for (const name of names) process.on(name, onSignal);
  // A supervisor has the other end of the channel; it closes with the supervisor, even on SIGKILL.
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
