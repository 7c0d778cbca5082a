import { stat } from 'node:fs/promises';
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
