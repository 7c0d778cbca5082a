import { mkdir } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Shell } from '../shell.ts';

/** Where commands that hold locks name them, unless they are told: where the XDG specification has state of programs. */
export function defaultJournalDir(env: Shell['env'], home: () => string = homedir): string {
  return join(env.XDG_STATE_HOME || join(home(), '.local', 'state'), 'remora', 'held');
}

/**
 * Makes sure of the journal's directory. The usual one may be missing, as for users without a home: a command is run
 * without a journal then, and what it holds when it dies is left to its TTL. One that was asked for may not.
 */
export async function journalDir(
  flag: string | false | undefined,
  { env }: Pick<Shell, 'env'>,
  home: () => string = homedir,
): Promise<string | undefined> {
  if (flag === false) return undefined;
  try {
    // Where the home is may itself be unknown, and is thrown then.
    const path = flag ?? defaultJournalDir(env, home);
    await mkdir(path, { recursive: true, mode: 0o700 });
    return path;
  } catch (error) {
    if (flag !== undefined) throw error;
    return undefined;
  }
}
