// D1. At most one process holds the lock of a directory. The lock is the operating system's own (LevelDB locks its LOCK
//     file with fcntl): it ends with its process, however that ends, and does not depend on process ids.
// D2. `owner.json` beside it names the owner for error messages, and for nothing else.
import { join, resolve } from 'node:path';
import { Level } from 'level';
import { CommandError } from '../../exit-codes.ts';
import { readJsonFile, writeJsonAtomically } from './atomic-file.ts';
import { makeDirectory } from './make-directory.ts';

export interface DirLock {
  release(): Promise<void>;
}

/**
 * Locks a directory for this process, and creates it if it does not exist.
 * @throws {CommandError} `dataDir` if another process has the lock; the message names that process.
 */
export async function lockDirectory(dir: string): Promise<DirLock> {
  const lockDir = join(dir, 'lock');
  try {
    await makeDirectory(resolve(lockDir));
  } catch (cause) {
    throw new CommandError('dataDir', `cannot use the data directory ${dir}: ${String(cause)}`, { cause });
  }
  const database = new Level(lockDir);
  try {
    await database.open();
  } catch (error) {
    throw await refusal(dir, lockDir, error);
  }
  await writeJsonAtomically(join(lockDir, 'owner.json'), { pid: process.pid, argv: process.argv.slice(1, 3) });
  return { release: () => database.close() };
}

async function refusal(dir: string, lockDir: string, error: unknown): Promise<CommandError> {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  const code = cause instanceof Error && 'code' in cause ? cause.code : undefined;
  if (code !== 'LEVEL_LOCKED') {
    return new CommandError('dataDir', `cannot lock the data directory ${dir}: ${String(cause)}`, { cause: error });
  }
  const owner = await readJsonFile(lockDir, 'owner.json').catch(() => undefined);
  const pid = typeof owner === 'object' && owner !== null && 'pid' in owner ? ` (process ${owner.pid})` : '';
  return new CommandError('dataDir', `the data directory ${dir} is in use by another process${pid}`, { cause: error });
}
