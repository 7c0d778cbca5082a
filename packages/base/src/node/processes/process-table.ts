import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { listProcesses, type ProcessRow } from './listing.ts';

export type SignalOutcome = 'sent' | 'gone' | 'refused';

/** Questions to the system about processes; empty text where the system has no answer. */
export interface ProcessTable {
  readonly host: string;
  readonly boot: string;
  readonly space: string;
  readonly pid: number;
  /** When the process with this id started; undefined if there is none (any more). */
  startOf(pid: number): string | undefined;
  /**
   * All processes that have not ended; undefined where the system does not list them. No chain of processes that start
   * one another escapes it (listing.ts). With `some`, the processes that one look finds, which is enough to send
   * signals.
   *
   * @throws Error if the system fails to list them.
   */
  list(extent?: 'some'): readonly ProcessRow[] | undefined;
  /** Whether this entry was in the process's initial environment; false where the system does not report it. */
  hasVariable(pid: number, entry: string): boolean;
  /** Signals a process or, if `target` is negative, a group. Signal 0 only checks. */
  signal(target: number, signal: NodeJS.Signals | 0): SignalOutcome;
}

/**
 * Linux answers everything through `/proc`. Elsewhere `ps` lists processes with their parents and groups, and only the
 * id identifies a process: it counts as alive while that is in use.
 */
export function systemProcessTable(): ProcessTable {
  const hasProc = orEmpty(() => readFileSync('/proc/self/stat', 'utf8')) !== '';
  return {
    host: hostname(),
    boot: orEmpty(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    space: orEmpty(() => readlinkSync('/proc/self/ns/pid')),
    pid: process.pid,
    startOf: (pid) => (signal(pid, 0) === 'gone' ? undefined : startOfTaken(pid)),
    list: hasProc ? listByProc : listByPs,
    hasVariable: (pid, entry) =>
      orEmpty(() => readFileSync(`/proc/${pid}/environ`, 'latin1'))
        .split('\0')
        .includes(entry),
    signal,
  };
}

/** Whether the terminal sends signals of its keys to this process: it is in the foreground of one. */
export function isInForeground(): boolean {
  const fields = fieldsOf(orEmpty(() => readFileSync('/proc/self/stat', 'utf8')));
  // Where the system does not report it: usually true while it has a terminal.
  return fields === undefined || fields[TERMINAL_GROUP_FIELD] === fields[GROUP_FIELD];
}

/** Indexes of the fields of `/proc/PID/stat` after the program's name (proc(5)). */
const STATE_FIELD = 0;
const PARENT_FIELD = 1;
const GROUP_FIELD = 2;
const SESSION_FIELD = 3;
const TERMINAL_GROUP_FIELD = 5;
const START_FIELD = 19;

function startOfTaken(pid: number): string | undefined {
  const fields = fieldsOf(orEmpty(() => readFileSync(`/proc/${pid}/stat`, 'utf8')));
  return fields !== undefined && hasEnded(fields) ? undefined : (fields?.[START_FIELD] ?? '');
}

function fieldsOf(stat: string): readonly string[] | undefined {
  // The name is in parentheses, and may contain any character.
  return stat === '' ? undefined : stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

/** Error codes of the system for a process that is gone, or hidden from this user. */
const UNSEEN: Readonly<Record<string, 'ended' | 'hidden' | undefined>> = {
  ENOENT: 'ended',
  ESRCH: 'ended',
  EACCES: 'hidden',
  EPERM: 'hidden',
};

/** @throws Error if it is unknown whether the process exists. */
function listedFields(pid: string): readonly string[] | 'ended' | 'hidden' {
  try {
    return fieldsOf(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? 'ended';
  } catch (error) {
    const unseen = error instanceof Error && 'code' in error ? UNSEEN[String(error.code)] : undefined;
    if (unseen !== undefined) return unseen;
    throw error;
  }
}

/** A process that has ended and was not waited for yet does nothing any more. */
function hasEnded(fields: readonly string[]): boolean {
  return ['Z', 'X', 'x'].includes(fields[STATE_FIELD] ?? '');
}

function listByProc(extent?: 'some'): readonly ProcessRow[] {
  return listProcesses(
    { ids: () => readdirSync('/proc').filter((name) => /^\d+$/.test(name)), look: lookByProc },
    extent,
  );
}

function lookByProc(pid: string): ProcessRow | 'ended' | 'hidden' {
  const fields = listedFields(pid);
  if (typeof fields === 'string') return fields;
  if (hasEnded(fields)) return 'ended';
  const [parent, group, session] = [PARENT_FIELD, GROUP_FIELD, SESSION_FIELD].map((field) => Number(fields[field]));
  return { pid: Number(pid), parent: parent ?? 0, group: group ?? 0, session };
}

const PS_TIMEOUT_MS = 5_000;
const PS_BYTES_MAX = 16 * 1024 * 1024;

function listByPs(): readonly ProcessRow[] | undefined {
  const text = orEmpty(() =>
    execFileSync('ps', ['-A', '-o', 'pid=,ppid=,pgid=,stat='], {
      ...{ timeout: PS_TIMEOUT_MS, maxBuffer: PS_BYTES_MAX },
      stdio: ['ignore', 'pipe', 'ignore'],
    }).toString(),
  );
  return text === '' ? undefined : rowsOfPs(text);
}

/** Parses lines of `PID PPID PGID STAT`. */
export function rowsOfPs(text: string): readonly ProcessRow[] {
  return text.split('\n').flatMap((line) => {
    const [pid, parent, group, state] = line.trim().split(/\s+/);
    if (state === undefined || /^[ZX]/.test(state)) return [];
    return [{ pid: Number(pid), parent: Number(parent), group: Number(group), session: undefined }];
  });
}

function signal(target: number, name: NodeJS.Signals | 0): SignalOutcome {
  try {
    process.kill(target, name);
    return 'sent';
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'ESRCH' ? 'gone' : 'refused';
  }
}

function orEmpty(read: () => string): string {
  try {
    return read();
  } catch {
    return '';
  }
}
