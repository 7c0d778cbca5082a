// K1. The command starts only under its hold (a lock or the like), which is released only when no process of the
//     command is left (RC1 of `run/running-command.ts`).
// K2. When the hold is lost the command is asked to stop, and killed shortly after if it does not. The fencing version
//     protects against what it still does in between.
// K3. A signal always has an effect: it ends the wait for the hold, goes to the command or, if that has ended, ends the
//     wait for others that have the same hold.
// K4. If the hold no longer existed when it should be released, it may have been lost while the command still ran: that
//     is reported as a loss, whatever the command's own exit code. A missing answer is not reported like that: as far
//     as is known the hold existed.
// K5. Before the command begins it has a guard, which ends it if this process dies (G1 of `run/guard.ts`), and the
//     journal names it, so that nothing is released early while it runs (J6 of the SDK's `journal.ts`).
import { type ErrorCode, nodeClock, nodeRandom, ServiceError, systemProcessTable } from '@remora/base';
import type { CommandIdentity } from 'remora';
import { CommandError, exitCode } from '../exit-codes.ts';
import { printableText } from '../format/bytes-text.ts';
import {
  type CommandSystem,
  exitCodeOf,
  FORWARDED,
  type Forwarded,
  isEnding,
  RunningCommand,
} from '../run/running-command.ts';
import type { Shell } from '../shell.ts';

/** The hold of a running command: `signal` aborts when it is lost. */
export interface Holding {
  /** Reading it finds out whether the hold is lost, also if this process was frozen meanwhile. */
  readonly signal: AbortSignal;
  /**
   * Releases the hold, and waits for others to do so: for none any more once `signal` is aborted.
   *
   * @throws ServiceError LOCK_NOT_HELD or SESSION_EXPIRED if it was lost.
   */
  part?(signal: AbortSignal): Promise<void>;
  /**
   * Releases the hold without waiting for others. @throws ServiceError like `part`; does nothing once it is known to be
   * lost.
   */
  release(): Promise<void>;
}

export interface ChildRequest<Held> {
  /** The name of the hold, used in the message about its loss: for people. */
  readonly what: string;
  readonly lost: string;
  readonly argv: readonly string[];
  /** The time between SIGTERM and SIGKILL. */
  readonly killAfterMs: number | undefined;
  /** How long the hold outlasts this process. */
  readonly ttlMs: number | undefined;
  readonly shell: Shell;
  readonly system?: CommandSystem;
  /** Additional environment of the command. */
  env(held: Held): Readonly<Record<string, string>>;
  /** Names the command in the journal (K5). */
  nameCommand?(command: CommandIdentity): Promise<void>;
  onStart?(command: RunningCommand, held: Held): void;
}

/** For the help of commands that run other commands. */
export const COMMAND_PROMISE =
  'Signals are passed on to the command. The lock is released when the command and every process that it started ' +
  '(except those that left its session) have ended. If this process dies, all of them are killed.';

const KILL_AFTER_MS = 1_000;
/** The SDK's default. */
const TTL_MS = 10_000;
const LOST: ReadonlySet<ErrorCode> = new Set(['LOCK_NOT_HELD', 'SESSION_EXPIRED']);

/**
 * Runs a command under the hold from `acquire`, and returns the exit code of this process. A signal aborts `acquire`.
 */
export async function runChild<Held extends Holding>(
  acquire: (signal: AbortSignal) => Promise<Held>,
  request: ChildRequest<Held>,
): Promise<number> {
  // Until the command runs, a signal ends the wait; afterwards the command receives it.
  const giveUp = new AbortController();
  const part = new AbortController();
  let phase: 'waiting' | 'parting' | RunningCommand = 'waiting';
  const onSignal = (signal: Forwarded): void => {
    if (phase instanceof RunningCommand) phase.forward(signal);
    else if (isEnding(signal)) (phase === 'waiting' ? giveUp : part).abort(signal);
  };
  for (const signal of FORWARDED) process.on(signal, onSignal);
  try {
    const held = await acquire(giveUp.signal).catch(notBegun);
    let code: number;
    try {
      const run = { giveUp: giveUp.signal, onBegun: (command: RunningCommand) => (phase = command) };
      code = await runUnder(held, request, run);
    } catch (error) {
      await wasHeld(held.release(), 'could not be released and stays held until its session ends', request);
      throw error;
    }
    phase = 'parting';
    const parted = await wasHeld(held.part?.(part.signal), 'did not end together with all other parties', request);
    const released = await wasHeld(
      held.release(),
      'could not be released and stays held until its session ends',
      request,
    );
    return parted && released ? code : exitCode('lockLost'); // K4
  } catch (error) {
    if (giveUp.signal.aborted) return exitCodeOf(String(giveUp.signal.reason));
    throw error;
  } finally {
    for (const signal of FORWARDED) process.off(signal, onSignal);
  }
}

interface Run {
  readonly giveUp: AbortSignal;
  readonly onBegun: (command: RunningCommand) => void;
}

/** Returns the exit code when no process of the command is left; none is left if this throws, either. */
async function runUnder<Held extends Holding>(
  held: Held,
  request: ChildRequest<Held>,
  { giveUp, onBegun }: Run,
): Promise<number> {
  // K3. The hold may have been granted although the wait for it was cancelled.
  giveUp.throwIfAborted();
  const command = await prepare(held, request);
  try {
    await request.nameCommand?.(command.identity);
    giveUp.throwIfAborted();
    // K1. If this process was frozen while it waited, the hold may be lost by now.
    if (held.signal.aborted) {
      request.shell.err(`remora: ${request.lost} (${reasonOf(held.signal)}) before the command started`);
      return exitCode('lockLost');
    }
    onBegun(command);
    command.begin();
    request.onStart?.(command, held);
    return await watchOver(command, held, request);
  } finally {
    await command.settle();
  }
}

function prepare<Held>(held: Held, request: ChildRequest<Held>): Promise<RunningCommand> {
  const { what, argv, killAfterMs = KILL_AFTER_MS, ttlMs = TTL_MS, shell, system = productionSystem() } = request;
  // Heartbeats are sent three times within a TTL, so two thirds of it are left when this process dies: half of that is
  // enough.
  const guardGraceMs = Math.min(killAfterMs, ttlMs / 3);
  const env = { ...process.env, ...request.env(held) };
  return RunningCommand.prepare({ ...{ what, argv, env, killAfterMs, guardGraceMs }, shell, system });
}

function productionSystem(): CommandSystem {
  return { table: systemProcessTable(), clock: nodeClock(), random: nodeRandom() };
}

/** A waiter loses its session if nothing answers for as long as the TTL, or if another client has closed it. */
function notBegun(error: unknown): never {
  if (!(error instanceof ServiceError) || error.code !== 'SESSION_EXPIRED') throw error;
  throw new CommandError('unavailable', `${error.message} (${error.code}); the command was not started`, {
    cause: error,
  });
}

/** Whether it was still held when it was released, as far as is known (K4). */
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
    if (isLost) shell.err(`remora: ${lost} (${error.message}), possibly before the command had ended`);
    else shell.err(`remora: ${printableText(what)} ${failure}: ${String(error)}`);
    return !isLost;
  }
}

function reasonOf({ reason }: AbortSignal): string {
  return reason instanceof Error ? reason.message : String(reason);
}

/** Waits for the command, and ends it when its hold is lost (K2). */
async function watchOver(
  command: RunningCommand,
  held: Pick<Holding, 'signal'>,
  { lost, shell }: Pick<ChildRequest<never>, 'lost' | 'shell'>,
): Promise<number> {
  const { signal } = held;
  let isStopped = false;
  const onLost = (): void => {
    isStopped = true;
    shell.err(`remora: ${lost} (${reasonOf(signal)}); stopping the command`);
    void command.end();
  };
  if (signal.aborted) onLost();
  else signal.addEventListener('abort', onLost, { once: true });
  const { code, signal: killedBy } = await command.over();
  signal.removeEventListener('abort', onLost);
  // Checked again: if the process was frozen, it may learn of the command's end first.
  if (!held.signal.aborted) return code ?? exitCodeOf(killedBy ?? '');
  if (!isStopped) shell.err(`remora: ${lost} (${reasonOf(signal)}), possibly before the command had ended`);
  return exitCode('lockLost');
}
