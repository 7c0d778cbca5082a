// K1. The command starts only under the lock, and the lock is released only when it has ended.
// K2. When the lock is lost the command is told to stop, and ended shortly after when it does not; what it still does
//     in between is what the fencing version is for.
import { type ChildProcess, spawn } from 'node:child_process';
import { EMPTY_BYTES, formatDurationMs, ServiceError } from '@remora/base';
import type { HeldLock, RemoraClient } from 'remora';
import { CommandError, exitCode } from '../exit-codes.ts';
import { printable } from '../format/bytes-text.ts';
import { askedText } from '../format/lock-event-text.ts';
import type { Shell } from '../shell.ts';
import type { ConnectionFlags } from './connection.ts';
import { type HealthFlags, healthOf } from './health-command.ts';

export interface RunFlags extends ConnectionFlags, HealthFlags {
  readonly namespace: string;
  readonly wait?: number;
  readonly ttl?: number;
  readonly maxHold?: number;
  readonly killAfter?: number;
  readonly stopOnRevoke?: true;
  readonly data?: string;
  readonly keepData?: true;
  readonly lockDelay?: number;
  readonly shared?: true;
  readonly permits?: number;
  readonly capacity?: number;
  /** `false`: none. */
  readonly journal?: string | false;
}

export interface RunRequest {
  readonly name: string;
  readonly argv: readonly string[];
  readonly flags: RunFlags;
  readonly shell: Shell;
}

/** A client, or a session of one. */
type LockScope = Pick<RemoraClient, 'rwLock' | 'semaphore'>;

const FORWARDED = ['SIGTERM', 'SIGHUP', 'SIGINT'] as const;
const SIGNAL_NUMBERS: Readonly<Record<string, number>> = { SIGHUP: 1, SIGINT: 2, SIGKILL: 9, SIGTERM: 15 };

/** Runs a command under a lock and gives the exit code of this process. */
export async function runUnderLock(client: RemoraClient, request: RunRequest): Promise<number> {
  const { name, flags, shell } = request;
  // Until the command runs, a signal gives up the wait; afterwards it is the command's.
  const giveUp = new AbortController();
  let child: ChildProcess | undefined;
  const onSignal = (signal: NodeJS.Signals): void => {
    if (child === undefined) giveUp.abort(signal);
    // A terminal has sent Ctrl-C to the command as well; everything else reached this process alone.
    else if (signal !== 'SIGINT' || !process.stdin.isTTY) child.kill(signal);
  };
  for (const signal of FORWARDED) process.on(signal, onSignal);
  try {
    const health = healthOf(flags, () => child !== undefined);
    const scope = health === undefined ? client : await client.session({ health });
    const lock = await acquire(scope, request, giveUp.signal);
    try {
      child = start(lock, request);
      hearRequests(child, lock, request);
      return await watchOver(child, lock, flags.killAfter ?? 1000, shell);
    } finally {
      await lock[Symbol.asyncDispose]().catch((error: unknown) => {
        shell.err(`remora: ${name} could not be released and ends with its session: ${String(error)}`);
      });
    }
  } catch (error) {
    if (giveUp.signal.aborted) return 128 + (SIGNAL_NUMBERS[String(giveUp.signal.reason)] ?? 15);
    throw error;
  } finally {
    for (const signal of FORWARDED) process.off(signal, onSignal);
  }
}

async function acquire(client: LockScope, { name, flags }: RunRequest, signal: AbortSignal): Promise<HeldLock> {
  const { namespace, wait, maxHold, data, keepData = false, lockDelay = 0, shared, permits, capacity } = flags;
  const options = {
    ...{ signal, keepData, lockDelay },
    ...(wait === undefined ? {} : { wait }),
    ...(maxHold === undefined ? {} : { maxHold }),
    ...(data === undefined ? {} : { data }),
  };
  try {
    if (permits !== undefined && capacity !== undefined) {
      return await client.semaphore(name, { namespace, permits: capacity }).acquire({ ...options, permits });
    }
    const lock = client.rwLock(name, { namespace });
    return await (shared ? lock.read(options) : lock.write(options));
  } catch (error) {
    const taken = error instanceof ServiceError && (error.code === 'LOCK_TIMEOUT' || error.code === 'LOCK_BUSY');
    if (!taken) throw error;
    const waited = wait === 0 ? '' : ` and was not free within ${formatDurationMs(wait ?? 0)}`;
    throw new CommandError('lockBusy', `${name} is taken${waited}`, { cause: error });
  }
}

function start(lock: HeldLock, { name, argv, flags }: RunRequest): ChildProcess {
  const [program = '', ...args] = argv;
  return spawn(program, args, {
    stdio: 'inherit',
    env: {
      ...process.env,
      REMORA_LOCK_NAME: name,
      REMORA_LOCK_NAMESPACE: flags.namespace,
      REMORA_LOCK_VERSION: String(lock.version),
      REMORA_LOCK_PREVIOUS_DATA: printable(lock.previousData ?? EMPTY_BYTES),
    },
  });
}

/** Somebody asks for the lock: the command is told to end, if that is how it agrees; otherwise only people are told. */
function hearRequests(child: ChildProcess, lock: HeldLock, { name, flags, shell }: RunRequest): void {
  lock.onRevoke((asked) => {
    const agrees = flags.stopOnRevoke === true;
    shell.err(`remora: ${name} is asked for${askedText(asked)}${agrees ? '; stopping the command' : ''}`);
    if (agrees) child.kill('SIGTERM');
  });
}

/** Waits for the command, and ends it when the lock is lost (K2). */
function watchOver(child: ChildProcess, lock: HeldLock, killAfterMs: number, shell: Shell): Promise<number> {
  return new Promise((resolve, reject) => {
    const { signal } = lock;
    let deadline: NodeJS.Timeout | undefined;
    const onLost = (): void => {
      const reason = signal.reason instanceof Error ? signal.reason.message : String(signal.reason);
      shell.err(`remora: the lock was lost (${reason}); stopping the command`);
      child.kill('SIGTERM');
      deadline = setTimeout(() => child.kill('SIGKILL'), killAfterMs);
    };
    if (signal.aborted) onLost();
    else signal.addEventListener('abort', onLost, { once: true });
    child.once('error', (cause) => {
      signal.removeEventListener('abort', onLost);
      reject(new CommandError('failed', `cannot run the command: ${cause.message}`, { cause }));
    });
    child.once('exit', (code, killedBy) => {
      signal.removeEventListener('abort', onLost);
      clearTimeout(deadline);
      if (signal.aborted) resolve(exitCode('lockLost'));
      else resolve(code ?? 128 + (SIGNAL_NUMBERS[killedBy ?? ''] ?? 0));
    });
  });
}
