import type { CommandIdentity, ProcessIdentity } from '../../process-identity.ts';
import { processesOf } from './command-processes.ts';
import type { ProcessTable } from './process-table.ts';

/** Identifies this process, so that another one can tell later whether it still runs. */
export function identityOf({ host, boot, space, pid, startOf }: ProcessTable): ProcessIdentity {
  return { host, boot, space, pid, start: startOf(pid) ?? '' };
}

/** Whether the process, or every process of the command, has certainly ended; false whenever that is unknown. */
export function isGone(other: ProcessIdentity | CommandIdentity, table: ProcessTable): boolean {
  if (other.host !== table.host) return false;
  // The machine was restarted since.
  if (other.boot !== table.boot) return other.boot !== '' && table.boot !== '';
  if (other.space !== table.space) return false;
  if ('session' in other) return isCommandGone(other, table);
  const start = table.startOf(other.pid);
  if (start === undefined) return true;
  // Another process has its id now.
  return start !== other.start && start !== '' && other.start !== '';
}

function isCommandGone(command: CommandIdentity, table: ProcessTable): boolean {
  try {
    return processesOf(command, table).length === 0;
  } catch {
    return false;
  }
}
