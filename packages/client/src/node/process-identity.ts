import { readFileSync, readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import type { ProcessIdentity } from '../ports.ts';

/** What it asks the system; empty text where the system does not tell. */
export interface ProcessTable {
  readonly host: string;
  readonly boot: string;
  readonly space: string;
  readonly pid: number;
  /** When the process of this id started; undefined when there is none (any more). */
  startOf(pid: number): string | undefined;
}

/** This process, so that another one can tell later whether it still runs. */
export function identityOf({ host, boot, space, pid, startOf }: ProcessTable): ProcessIdentity {
  return { host, boot, space, pid, start: startOf(pid) ?? '' };
}

/** Whether the process has certainly ended; false whenever that cannot be told from here. */
export function isGone(other: ProcessIdentity, table: ProcessTable): boolean {
  if (other.host !== table.host) return false;
  // The machine was started anew since.
  if (other.boot !== table.boot) return other.boot !== '' && table.boot !== '';
  if (other.space !== table.space) return false;
  const start = table.startOf(other.pid);
  if (start === undefined) return true;
  // Its id was given to another process since.
  return start !== other.start && start !== '' && other.start !== '';
}

/** Linux tells through `/proc`. Elsewhere a process is known by its id alone, and taken for alive while that is in use. */
export function systemProcessTable(): ProcessTable {
  return {
    host: hostname(),
    boot: orEmpty(() => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim()),
    space: orEmpty(() => readlinkSync('/proc/self/ns/pid')),
    pid: process.pid,
    startOf,
  };
}

/** Where the fields of `/proc/PID/stat` are that come after the program's name (proc(5)). */
const STATE_FIELD = 0;
const START_FIELD = 19;

function startOf(pid: number): string | undefined {
  if (!isTaken(pid)) return undefined;
  const stat = orEmpty(() => readFileSync(`/proc/${pid}/stat`, 'utf8'));
  // The name is in parentheses, and may have any character in it.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  // One that has ended and was not waited for yet does nothing any more.
  if (['Z', 'X', 'x'].includes(fields[STATE_FIELD] ?? '')) return undefined;
  return fields[START_FIELD] ?? '';
}

function isTaken(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code !== 'ESRCH';
  }
}

function orEmpty(read: () => string): string {
  try {
    return read();
  } catch {
    return '';
  }
}
