import { stat } from 'node:fs/promises';
import { type Logger, OWN_UMASK } from '@remora/base';

/**
 * Warns about a data directory that other users may enter: an earlier version or a person created it. The mode is not
 * changed, because its operator may intend it.
 */
export async function warnOfLooseMode(dir: string, logger: Pick<Logger, 'warn'>): Promise<void> {
  const { mode } = await stat(dir);
  if ((mode & OWN_UMASK) === 0) return;
  const advice = `run: chmod -R go-rwx ${dir}`;
  logger.warn({ dir, mode: (mode & 0o777).toString(8), advice }, 'the data directory is accessible to other users');
}
