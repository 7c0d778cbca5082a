// K1. The command starts only under what is held, and that is given back only when the command has ended.
// K2. When it is lost the command is told to stop, and ended shortly after when it does not; what it still does in between
//     is what the fencing version is for.
// K3. A signal always has an effect: it gives up the wait for what is to be held, ends the command, or, when that has ended,
//     gives up the wait for others who hold the same.
// K4. What was held no longer when it was to be given back may have been lost while the command still ran: that is told as a
//     loss, whatever the command's own code. That nobody answered says nothing of the kind: it was held as far as is known.
import { type ChildProcess, spawn } from 'node:child_process';
import { type ErrorCode, nodeClock, ServiceError, type Timer } from '@remora/base';
import { CommandError, exitCode } from '../exit-codes.ts';
import { printableText } from '../format/bytes-text.ts';
import type { Shell } from '../shell.ts';

/** Something under which a command runs: `signal` aborts when it is lost. */
export interface Holding {
  /** Looking at it finds out whether it is lost, also when this process was frozen meanwhile. */
  readonly signal: AbortSignal;
  /**
   * Gives it back, and waits for others to do so: for nobody any more once `signal` is aborted.
   *
   * @throws ServiceError LOCK_NOT_HELD or SESSION_EXPIRED when it was lost.
   */
  part?(signal: AbortSignal): Promise<void>;
  /** Gives it back, and waits for nobody. @throws ServiceError as `part`; does nothing once it is known to be lost. */
  release(): Promise<void>;
}

export interface ChildRequest<Held> {
  /** What is held, and what is said when it is lost: for people. */
  readonly what: string;
  readonly lost: string;
  readonly argv: readonly string[];
  /** From SIGTERM to SIGKILL. */
  readonly killAfterMs: number | undefined;
  readonly shell: Shell;
  /** What the command sees besides. */
  env(held: Held): Readonly<Record<string, string>>;
  onStart?(child: ChildProcess, held: Held): void;
}

const FORWARDED = ['SIGTERM', 'SIGHUP', 'SIGINT'] as const;
const SIGNAL_NUMBERS: Readonly<Record<string, number>> = { SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGTERM: 15 };
const KILL_AFTER_MS = 1_000;
const LOST: ReadonlySet<ErrorCode> = new Set(['LOCK_NOT_HELD', 'SESSION_EXPIRED']);

/** Runs a command under what `acquire` gives, and gives the exit code of this process. `acquire` is aborted by a signal. */
export async function runChild<Held extends Holding>(
  acquire: (signal: AbortSignal) => Promise<Held>,
  request: ChildRequest<Held>,
): Promise<number> {
  const { lost, killAfterMs = KILL_AFTER_MS, shell } = request;
  // Until the command runs, a signal gives up the wait; afterwards it is the command's.
  const giveUp = new AbortController();
  const part = new AbortController();
  let child: ChildProcess | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (child === undefined) giveUp.abort(signal);
    else if (hasEnded(child)) part.abort(signal);
    // A terminal has sent Ctrl-C to the command as well; everything else reached this process alone.
    else if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
  };
  for (const signal of FORWARDED) process.on(signal, onSignal);
  try {
    const held = await acquire(giveUp.signal).catch(notBegun);
    let code: number;
    try {
      // K3. It may have been given although the wait for it was given up.
      giveUp.signal.throwIfAborted();
      // K1. Of a process that was frozen while it waited, what it was given may be lost by now.
      if (held.signal.aborted) {
        shell.err(`remora: ${lost} (${reasonOf(held.signal)}) before the command began`);
        code = exitCode('lockLost');
      } else {
        child = start(held, request);
        request.onStart?.(child, held);
        code = await watchOver(child, held, { lost, program: request.argv[0] ?? '', killAfterMs, shell });
      }
    } catch (error) {
      await wasHeld(held.release(), 'could not be released and ends with its session', request);
      throw error;
    }
    const parted = await wasHeld(held.part?.(part.signal), 'did not end together with all others', request);
    const released = await wasHeld(held.release(), 'could not be released and ends with its session', request);
    return parted && released ? code : exitCode('lockLost'); // K4
  } catch (error) {
    if (giveUp.signal.aborted) return 128 + (SIGNAL_NUMBERS[String(giveUp.signal.reason)] ?? 15);
    throw error;
  } finally {
    for (const signal of FORWARDED) process.off(signal, onSignal);
  }
}

/** Who waits loses its session where nobody answers for as long as that lasts, or where somebody has closed it. */
function notBegun(error: unknown): never {
  if (!(error instanceof ServiceError) || error.code !== 'SESSION_EXPIRED') throw error;
  throw new CommandError('unavailable', `${error.message} (${error.code}); the command was not begun`, {
    cause: error,
  });
}

/** Whether it was still held when it was given back, as far as is known (K4). */
async function wasHeld(
  givenBack: Promise<void> | undefined,
  failure: string,
  { what, lost, shell }: Pick<ChildRequest<never>, 'what' | 'lost' | 'shell'>,
): Promise<boolean> {
  try {
    await givenBack;
    return true;
  } catch (error) {
    const isLost = error instanceof ServiceError && LOST.has(error.code);
    if (isLost) shell.err(`remora: ${lost} (${error.message}), perhaps before the command had ended`);
    else shell.err(`remora: ${what} ${failure}: ${String(error)}`);
    return !isLost;
  }
}

function reasonOf({ reason }: AbortSignal): string {
  return reason instanceof Error ? reason.message : String(reason);
}

function hasEnded({ exitCode: code, signalCode }: ChildProcess): boolean {
  return code !== null || signalCode !== null;
}

function start<Held>(held: Held, { argv, env }: ChildRequest<Held>): ChildProcess {
  const [program = '', ...args] = argv;
  try {
    return spawn(program, args, { stdio: 'inherit', env: { ...process.env, ...env(held) } });
  } catch (cause) {
    // Most of what is wrong with a program is told by an event, and the rest is thrown.
    throw cannotRun(program, cause);
  }
}

/** No name at all is thrown as an argument that is none. */
const NOT_FOUND: ReadonlySet<unknown> = new Set(['ENOENT', 'ERR_INVALID_ARG_VALUE']);

function cannotRun(program: string, cause: unknown): CommandError {
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  const text = `cannot run ${program === '' ? "''" : printableText(program)}`;
  if (NOT_FOUND.has(code)) return new CommandError('notFound', `${text}: there is no such command`, { cause });
  if (code === 'EACCES') return new CommandError('cannotRun', `${text}: it is not executable`, { cause });
  return new CommandError('cannotRun', `${text}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
}

interface Watch extends Pick<ChildRequest<never>, 'lost' | 'shell'> {
  readonly program: string;
  readonly killAfterMs: number;
}

/** Waits for the command, and ends it when what it runs under is lost (K2). */
function watchOver(
  child: ChildProcess,
  held: Pick<Holding, 'signal'>,
  { lost, program, killAfterMs, shell }: Watch,
): Promise<number> {
  const { signal } = held;
  return new Promise((resolve, reject) => {
    let deadline: Timer | undefined;
    const onLost = (): void => {
      shell.err(`remora: ${lost} (${reasonOf(signal)}); stopping the command`);
      child.kill('SIGTERM');
      // Of a longer time than Node's own timers know, too: they would be over at once.
      deadline = nodeClock().setTimer(killAfterMs, () => child.kill('SIGKILL'));
    };
    child.on('error', (cause) => {
      // K1. It runs, and may not be sent signals, as with sudo: it has not ended.
      if (child.pid !== undefined) {
        return shell.err(`remora: the command could not be told to stop, and runs on: ${cause.message}`);
      }
      signal.removeEventListener('abort', onLost);
      reject(cannotRun(program, cause));
    });
    child.once('exit', (code, killedBy) => {
      signal.removeEventListener('abort', onLost);
      deadline?.cancel();
      // Looked at anew: of a process that was frozen the end of the command may be the first that it hears.
      if (!held.signal.aborted) return resolve(code ?? 128 + (SIGNAL_NUMBERS[killedBy ?? ''] ?? 0));
      if (deadline === undefined)
        shell.err(`remora: ${lost} (${reasonOf(signal)}), perhaps before the command had ended`);
      resolve(exitCode('lockLost'));
    });
    // When all listeners are there: what cannot be sent is told within the sending.
    if (signal.aborted) onLost();
    else signal.addEventListener('abort', onLost, { once: true });
  });
}
