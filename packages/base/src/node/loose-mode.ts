import { stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { Logger } from '../logger.ts';
import { OWN_UMASK } from './file-modes.ts';

/**
 * Warns about a directory that other users may enter: an earlier version or a person created it. The mode is not
 * changed, because its owner may intend it. A directory that does not exist is created with the right mode later.
 *
 * @param what names it: `the data directory`.
 */
export async function warnOfLooseMode(dir: string, what: string, logger: Pick<Logger, 'warn'>): Promise<void> {
  const mode = await stat(dir).then(
    (found) => found.mode,
    () => 0,
  );
  if ((mode & OWN_UMASK) === 0) return;
  const advice = `run: chmod -R go-rwx ${dir}`;
  logger.warn({ dir, mode: (mode & 0o777).toString(8), advice }, `${what} is accessible to other users`);
}

/**
 * Warns about a file that other users may read or write, and about a directory of it in which they may put another one
 * in its place. What is no file, such as a pipe, and what does not exist, is no reason to warn.
 *
 * @param what names the file: `the audit log`.
 */
export async function warnOfLooseFile(file: string, what: string, logger: Pick<Logger, 'warn'>): Promise<void> {
  const found = await stat(file).catch(() => undefined);
  if (found?.isFile() !== true) return;
  if ((found.mode & OWN_UMASK) !== 0) {
    const fields = { file, mode: (found.mode & 0o777).toString(8), advice: `run: chmod 600 ${file}` };
    logger.warn(fields, `${what} is accessible to other users`);
  }
  const dir = dirname(file);
  const { mode } = await stat(dir);
  if ((mode & OTHERS_WRITE) === 0 || (mode & STICKY) !== 0) return;
  const fields = { dir, mode: (mode & 0o777).toString(8), advice: `run: chmod go-w ${dir}` };
  logger.warn(fields, `${what} can be replaced by other users`);
}

const OTHERS_WRITE = 0o022;
/** In such a directory, a file is removed and renamed by its owner only. */
const STICKY = 0o1000;
