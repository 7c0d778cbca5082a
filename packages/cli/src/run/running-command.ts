// RC1. What a command runs under is given back only when none of its processes is left. Those are its first process and
//      whatever that has started, but for what has left the session (command-processes.ts CP2).
// RC2. Without a terminal the command has a session of its own, so all its processes are known and ended together. With
//      one it stays in this process's session and process group: only so can it read from the terminal, whose keys then
//      reach it as they reach this process, and are not passed on a second time.
// RC3. Signals go to the first process, which answers for the others. SIGINT and SIGQUIT go to its whole process group,
//      as from a terminal: shells rely on that. When the first process has ended and was asked to, what it left behind
//      is ended as well; otherwise it is waited for, as it may still work.
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

/** Passed on to the command (RC3). */
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

/** Whether it ends a process that does nothing about it. */
export function isEnding(signal: Forwarded): boolean {
  return signal !== 'SIGCONT' && signal !== 'SIGWINCH';
}

/** The exit code of what a signal ended, as shells have it. */
export function exitCodeOf(signal: string): number {
  return 128 + ((constants.signals as Readonly<Record<string, number | undefined>>)[signal] ?? 0);
}

/** Sent by a terminal's keys, and by its window, to all processes in its foreground. */
const FROM_TERMINAL: ReadonlySet<Forwarded> = new Set(['SIGINT', 'SIGQUIT', 'SIGWINCH']);
const TO_GROUP: ReadonlySet<Forwarded> = new Set(['SIGINT', 'SIGQUIT']);
const ASKS_TO_END: ReadonlySet<string> = new Set(['SIGINT', 'SIGQUIT', 'SIGTERM']);
/** Processes that end at once behind the first one are not worth a word. */
const TELL_AFTER_MS = 500;

/** The entry of its environment by which its processes are known where it shares a session (CP2). */
const MARK = 'REMORA_RUN_ID';

export interface CommandSystem {
  readonly table: ProcessTable;
  readonly clock: Clock;
  readonly random: Random;
}

interface CommandRequest {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  /** What it runs under, for people. */
  readonly what: string;
  /** From SIGTERM to SIGKILL. */
  readonly killAfterMs: number;
  /** The same where this process is gone, and nobody keeps what the command runs under. */
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
   * The command behind its gate, with a guard (G1 of `guard.ts`): `begin` or `settle` has to follow.
   *
   * @throws CommandError when it cannot be run.
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

  /** A signal that this process was sent (RC3). */
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

  /** Makes sure that it is over: one that has not begun does not begin, one that runs is ended. */
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

/** @throws CommandError when no process could be started. */
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
