import { closeSync, openSync } from 'node:fs';

/** Whether this process has a controlling terminal, from which a command may read, also past its standard input. */
export function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r+'));
    return true;
  } catch {
    return false;
  }
}
