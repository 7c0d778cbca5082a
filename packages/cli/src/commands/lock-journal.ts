import { access, constants, mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { OWN_DIR_MODE } from '@remora/base';
import { CommandError } from '../exit-codes.ts';
import type { Shell } from '../shell.ts';

/** What it needs of the system; each throws. */
interface JournalSystem {
  readonly home: () => string;
  /** Makes sure that this user can name something in a directory. */
  readonly requireUsable: (path: string) => Promise<void>;
}

const SYSTEM: JournalSystem = {
  home: homedir,
  requireUsable: (path) => access(path, constants.R_OK | constants.W_OK | constants.X_OK),
};

/**
 * Where commands that hold locks name them, unless they are told: where the XDG specification has state of programs.
 */
export function defaultJournalDir(env: Shell['env'], home = homedir): string {
  return join(env.XDG_STATE_HOME || join(home(), '.local', 'state'), 'remora', 'held');
}

/**
 * Makes sure of the journal's directory. The usual one may be missing, as for users without a home, or another user's,
 * as after a `sudo`: a command is run without a journal then, and what it holds when it dies is left to its TTL. One
 * that was asked for may not.
 */
export async function journalDir(
  flag: string | false | undefined,
  { env }: Pick<Shell, 'env'>,
  { home, requireUsable }: JournalSystem = SYSTEM,
): Promise<string | undefined> {
  if (flag === false) return undefined;
  try {
    // Where the home is may itself be unknown, and is thrown then.
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
