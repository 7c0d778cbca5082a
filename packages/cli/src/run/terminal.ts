import { closeSync, openSync } from 'node:fs';

/**
 * Whether this process has a controlling terminal, from which a command may read even if its standard input is
 * redirected.
 */
export function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r+'));
    return true;
  } catch {
    return false;
  }
}
