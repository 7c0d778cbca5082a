import { stat } from 'node:fs/promises';
import { type Logger, OWN_UMASK } from '@remora/base';

/**
 * Warns of a data directory that users other than this one may enter: it was made by an earlier version, or by hand. It
 * is left as it is, as its operator may mean it so.
 */
export async function warnOfLooseMode(dir: string, logger: Pick<Logger, 'warn'>): Promise<void> {
  const { mode } = await stat(dir);
  if ((mode & OWN_UMASK) === 0) return;
  const advice = `run: chmod -R go-rwx ${dir}`;
  logger.warn({ dir, mode: (mode & 0o777).toString(8), advice }, 'the data directory is accessible to other users');
}
