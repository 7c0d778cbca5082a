// RC1. The lock (or other hold) of a command is released only when none of its processes is left. These are its first
//      process and everything started by it, except processes that have left the session (command-processes.ts CP2).
// RC2. Without a terminal the command has a session of its own, so all its processes are known and ended together. With
//      a terminal it stays in this process's session and process group: only then can it read from the terminal. The
//      terminal's keys then reach it directly, and are not passed on a second time.
// RC3. Signals go to the first process, which is responsible for the others. SIGINT and SIGQUIT go to its whole process
//      group, as from a terminal: shells rely on that. If the first process has ended after it was asked to, the
//      processes that it left behind are ended as well; otherwise they are awaited, because they may still be working.
import type { ChildProcess } from 'node:child_process';
import { constants } from 'node:os';
import {
  type Clock,
  type CommandIdentity,
  commandOver,
  endCommand,
  identityOf,
  isInForeground,
  type ProcessTable,
  processesOf,
  type Random,
  randomGuid,
} from '@remora/base';
import { CommandError } from '../exit-codes.ts';
import { printableText } from '../format/bytes-text.ts';
import type { Shell } from '../shell.ts';
import { requireProgram } from './find-program.ts';
import { type GatedCommand, startGated } from './gate.ts';
import { Guard } from './guard.ts';
import { hasTerminal } from './terminal.ts';

/** Signals passed on to the command (RC3). */
export const FORWARDED = [
  'SIGHUP',
  'SIGINT',
  'SIGQUIT',
  'SIGTERM',
  'SIGUSR1',
  'SIGUSR2',
  'SIGALRM',
  'SIGCONT',
  'SIGWINCH',
] as const;
export type Forwarded = (typeof FORWARDED)[number];

/** Whether the signal ends a process without a handler. */
export function isEnding(signal: Forwarded): boolean {
  return signal !== 'SIGCONT' && signal !== 'SIGWINCH';
}

/** The exit code of a process that a signal ended, as shells report it. */
export function exitCodeOf(signal: string): number {
  return 128 + ((constants.signals as Readonly<Record<string, number | undefined>>)[signal] ?? 0);
}

/** A terminal sends these, for its keys and its window, to all processes in its foreground. */
const FROM_TERMINAL: ReadonlySet<Forwarded> = new Set(['SIGINT', 'SIGQUIT', 'SIGWINCH']);
const TO_GROUP: ReadonlySet<Forwarded> = new Set(['SIGINT', 'SIGQUIT']);
const ASKS_TO_END: ReadonlySet<string> = new Set(['SIGINT', 'SIGQUIT', 'SIGTERM']);
/** Processes that end within this time after the first one are not reported. */
const TELL_AFTER_MS = 500;

/** The environment entry that identifies its processes in a shared session (CP2). */
const MARK = 'REMORA_RUN_ID';

export interface CommandSystem {
  readonly table: ProcessTable;
  readonly clock: Clock;
  readonly random: Random;
}

interface CommandRequest {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** The name of the hold, for people. */
  readonly what: string;
  /** The time between SIGTERM and SIGKILL. */
  readonly killAfterMs: number;
  /** The same if this process is gone, and no one keeps the hold alive. */
  readonly guardGraceMs: number;
  readonly shell: Pick<Shell, 'err'>;
  readonly system: CommandSystem;
}

interface FirstEnd {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export class RunningCommand {
  readonly identity: CommandIdentity;
  readonly #request: CommandRequest;
  readonly #gated: GatedCommand;
  readonly #sharesTerminal: boolean;
  readonly #firstEnd: Promise<FirstEnd>;
  readonly #received = new Set<string>();
  #guard: Guard | undefined;
  #begun = false;
  #isOver = false;
  #firstEnded = false;
  #ending: Promise<void> | undefined;

  private constructor(request: CommandRequest, gated: GatedCommand, identity: CommandIdentity) {
    const { child } = gated;
    this.identity = identity;
    this.#request = request;
    this.#gated = gated;
    this.#sharesTerminal = identity.session !== identity.pid;
    this.#firstEnd = new Promise((resolve) => {
      child.once('exit', (code, signal) => {
        this.#firstEnded = true;
        resolve({ code, signal });
      });
    });
    child.on('error', (error) => this.#tellRefused(error.message));
  }

  /**
   * Prepares the command behind its gate, with a guard (G1 of `guard.ts`): `begin` or `settle` must follow.
   *
   * @throws CommandError if it cannot be run.
   */
  static async prepare(request: CommandRequest): Promise<RunningCommand> {
    const { argv, env, system } = request;
    requireProgram(argv[0] ?? '', env.PATH);
    const mark = `${MARK}=${randomGuid(system.random)}`;
    const ownSession = !hasTerminal();
    const gated = startGated({ argv, env: { ...env, [MARK]: mark.slice(MARK.length + 1) }, ownSession });
    const pid = await pidOf(gated);
    const session = ownSession ? pid : ownSessionOf(system.table);
    const identity = { ...identityOf({ ...system.table, pid }), session, mark };
    const command = new RunningCommand(request, gated, identity);
    try {
      await command.#beGuarded();
    } catch (cause) {
      await command.settle();
      throw new CommandError(
        'cannotRun',
        `cannot run ${printableText(argv[0] ?? '')}: cannot start its guard process`,
        { cause },
      );
    }
    return command;
  }

  /** The first process. */
  get child(): ChildProcess {
    return this.#gated.child;
  }

  begin(): void {
    this.#begun = true;
    this.#gated.open();
  }

  /** Passes on a signal that this process received (RC3). */
  forward(signal: Forwarded): void {
    this.#received.add(signal);
    const { table } = this.#request.system;
    if (this.#firstEnded) {
      if (isEnding(signal)) void this.end();
    } else if (this.#sharesTerminal) {
      if (!FROM_TERMINAL.has(signal) || !isInForeground()) this.child.kill(signal);
    } else if (!TO_GROUP.has(signal)) {
      this.child.kill(signal);
    } else if (table.signal(-this.identity.pid, signal) === 'refused') {
      this.#tellRefused(`${signal} is not permitted`);
    }
  }

  /** Ends all its processes, whatever they do. */
  end(): Promise<void> {
    const { system, killAfterMs: graceMs } = this.#request;
    const onRefused = () => this.#tellRefused('not permitted');
    this.#ending ??= endCommand(this.identity, { ...system, graceMs, onRefused });
    return this.#ending;
  }

  /** Resolves when none of its processes is left, with how the first one ended. */
  async over(): Promise<FirstEnd> {
    const first = await this.#firstEnd;
    const isAsked = [...this.#received].some((signal) => ASKS_TO_END.has(signal) || signal === first.signal);
    if (isAsked) void this.end();
    const { table, clock } = this.#request.system;
    const telling = clock.setTimer(TELL_AFTER_MS, () => this.#tellOfOthers());
    await commandOver(this.identity, table, clock);
    telling.cancel();
    await this.#ending;
    this.#isOver = true;
    this.#guard?.dismiss();
    return first;
  }

  /** Ensures that the command is over: if it has not begun, it does not begin; if it runs, it is ended. */
  async settle(): Promise<void> {
    if (this.#isOver) return;
    if (this.#begun) void this.end();
    else this.#gated.close();
    await this.over();
  }

  async #beGuarded(): Promise<void> {
    const { guardGraceMs: graceMs, shell, system } = this.#request;
    const onLost = (text: string) => shell.err(`remora: ${text}`);
    this.#guard = await Guard.start({ command: this.identity, graceMs, clock: system.clock, onLost });
  }

  #tellRefused(why: string): void {
    this.#request.shell.err(`remora: could not signal the command to stop; it keeps running: ${why}`);
  }

  #tellOfOthers(): void {
    if (this.#ending !== undefined) return;
    const { shell, what, system } = this.#request;
    shell.err(
      `remora: the command has ended, but processes that it started are still running${someOf(this.identity, system.table)}. ` +
        `${printableText(what)} is released when they have ended; send this process a signal to end them`,
    );
  }
}

const TOLD_MAX = 10;

function someOf(identity: CommandIdentity, table: ProcessTable): string {
  try {
    return ` (${processesOf(identity, table).slice(0, TOLD_MAX).join(', ')})`;
  } catch {
    return '';
  }
}

/** @throws CommandError if no process could be started. */
function pidOf({ child }: GatedCommand): Promise<number> {
  return new Promise((resolve, reject) => {
    child.once('spawn', () => resolve(child.pid ?? 0));
    child.once('error', (cause) => {
      reject(new CommandError('cannotRun', `cannot start a process: ${cause.message}`, { cause }));
    });
  });
}

function ownSessionOf(table: ProcessTable): number {
  return table.list()?.find(({ pid }) => pid === table.pid)?.session ?? 0;
}
