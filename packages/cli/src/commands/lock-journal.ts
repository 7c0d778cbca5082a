import { access, constants, mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { OWN_DIR_MODE } from '@remora/base';
import { CommandError } from '../exit-codes.ts';
import type { Shell } from '../shell.ts';

/** The system calls that it uses; each throws. */
interface JournalSystem {
  readonly home: () => string;
  /** Ensures that this user can create entries in a directory. */
  readonly requireUsable: (path: string) => Promise<void>;
}

const SYSTEM: JournalSystem = {
  home: homedir,
  requireUsable: (path) => access(path, constants.R_OK | constants.W_OK | constants.X_OK),
};

/** The default directory of journals: where the XDG specification puts the state of programs. */
export function defaultJournalDir(env: Shell['env'], home = homedir): string {
  return join(env.XDG_STATE_HOME || join(home(), '.local', 'state'), 'remora', 'held');
}

/**
 * Ensures that the journal's directory is usable. The default one may be missing, for example for users without a home,
 * or may belong to another user, for example after a `sudo`: then a command runs without a journal, and if it dies, the
 * TTL ends its hold. A directory from a flag must be usable.
 */
export async function journalDir(
  flag: string | false | undefined,
  { env }: Pick<Shell, 'env'>,
  { home, requireUsable }: JournalSystem = SYSTEM,
): Promise<string | undefined> {
  if (flag === false) return undefined;
  try {
    // The home itself may be unknown; then this throws.
    const path = flag ?? defaultJournalDir(env, home);
    await mkdir(path, { recursive: true, mode: OWN_DIR_MODE });
    await requireUsable(path);
    return path;
  } catch (error) {
    if (flag === undefined) return undefined;
    const why = error instanceof Error ? error.message : String(error);
    throw new CommandError('failed', `cannot keep a journal in ${flag}: ${why}`, { cause: error });
  }
}
