import { EMPTY_BYTES, formatDurationMs, ServiceError, utf8Text } from '@remora/base';
import type { HeldLock, RemoraClient } from 'remora';
import { CommandError } from '../exit-codes.ts';
import { printable, printableText } from '../format/bytes-text.ts';
import { askedText } from '../format/lock-event-text.ts';
import type { RunningCommand } from '../run/running-command.ts';
import type { Shell } from '../shell.ts';
import type { ConnectionFlags } from './connection.ts';
import { type HealthFlags, healthOf } from './health-command.ts';
import { heldByText, tellOfWait } from './lock-wait.ts';
import { runChild } from './run-child.ts';

export interface RunFlags extends ConnectionFlags, HealthFlags {
  readonly namespace: string;
  readonly wait?: number;
  readonly conflictExitCode?: number;
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
  /** `false`: no journal. */
  readonly journal?: string | false;
}

export interface RunRequest {
  readonly name: string;
  readonly argv: readonly string[];
  readonly flags: RunFlags;
  readonly shell: Shell;
}

/** A client, or one of its sessions. */
type LockScope = Pick<RemoraClient, 'rwLock' | 'semaphore'>;

/** Runs a command under a lock and returns the exit code of this process. */
export async function runUnderLock(client: RemoraClient, request: RunRequest): Promise<number> {
  const { name, argv, flags, shell } = request;
  let runs = false;
  const health = healthOf(flags, () => runs);
  const scope = health === undefined ? client : await client.session({ health });
  const take = async (signal: AbortSignal): Promise<HeldLock> => {
    const isOver =
      flags.wait === 0 || flags.json ? undefined : tellOfWait(client, { name, namespace: flags.namespace }, shell);
    try {
      return await acquire(scope, request, signal);
    } catch (error) {
      throw await refusalOf(error, client, request, signal);
    } finally {
      isOver?.();
    }
  };
  return runChild(take, {
    ...{
      what: printableText(name),
      lost: 'the lock was lost',
      argv,
      killAfterMs: flags.killAfter,
      ttlMs: flags.ttl,
      shell,
    },
    env: (lock: HeldLock) => ({
      REMORA_LOCK_NAME: name,
      REMORA_LOCK_NAMESPACE: flags.namespace,
      REMORA_LOCK_VERSION: String(lock.version),
      REMORA_LOCK_PREVIOUS_DATA: variableOf(lock.previousData ?? EMPTY_BYTES),
    }),
    nameCommand: (identity) => client.nameCommand(identity),
    onStart: (command, lock) => {
      runs = true;
      hearRequests(command, lock, request);
    },
  });
}

async function acquire(client: LockScope, { name, flags }: RunRequest, signal: AbortSignal): Promise<HeldLock> {
  const { namespace, wait, maxHold, data, keepData = false, lockDelay = 0, shared, permits, capacity } = flags;
  const options = {
    ...{ signal, keepData, lockDelay },
    ...(wait === undefined ? {} : { wait }),
    ...(maxHold === undefined ? {} : { maxHold }),
    ...(data === undefined ? {} : { data }),
  };
  if (permits !== undefined && capacity !== undefined) {
    return await client.semaphore(name, { namespace, permits: capacity }).acquire({ ...options, permits });
  }
  const lock = client.rwLock(name, { namespace });
  return await (shared ? lock.read(options) : lock.write(options));
}

/** The message if the lock was not acquired. */
async function refusalOf(
  error: unknown,
  client: RemoraClient,
  { name, flags }: RunRequest,
  signal: AbortSignal,
): Promise<unknown> {
  const taken = error instanceof ServiceError && (error.code === 'LOCK_TIMEOUT' || error.code === 'LOCK_BUSY');
  if (!taken) return error;
  const { namespace, wait = 0, conflictExitCode } = flags;
  const waited = wait === 0 ? '' : ` and did not become free within ${formatDurationMs(wait)}`;
  const held = await heldByText(client, { name, namespace }, signal);
  return new CommandError('lockBusy', `${printableText(name)} is taken${waited}${held}`, {
    cause: error,
    ...(conflictExitCode === undefined ? {} : { code: conflictExitCode }),
  });
}

/** Text as it was left, possibly several lines, so that it can be passed on. A variable cannot carry other bytes. */
function variableOf(data: Uint8Array): string {
  const text = utf8Text(data);
  return text === undefined || text.includes('\0') ? printable(data) : text;
}

/**
 * Another client asks for the lock: the command is asked to end, if the flags agree to that; otherwise only people are
 * informed.
 */
function hearRequests(command: RunningCommand, lock: HeldLock, { name, flags, shell }: RunRequest): void {
  lock.onRevoke((asked) => {
    const agrees = flags.stopOnRevoke === true;
    shell.err(
      `remora: release of ${printableText(name)} requested${askedText(asked)}${agrees ? '; stopping the command' : ''}`,
    );
    if (agrees) command.forward('SIGTERM');
  });
}
