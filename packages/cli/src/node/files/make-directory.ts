import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { OWN_DIR_MODE } from '@remora/base';

/**
 * Makes a directory and its missing parents, accessible to this user alone. Node's own recursive mkdir retries for ever
 * where no directory can be created, as in `/proc`, and cannot be interrupted by signals.
 */
export async function makeDirectory(path: string): Promise<void> {
  const attempt = (): Promise<boolean> =>
    mkdir(path, OWN_DIR_MODE).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT' && dirname(path) !== path) return false;
        throw error;
      },
    );
  try {
    if (await attempt()) return;
    await makeDirectory(dirname(path));
    await mkdir(path, OWN_DIR_MODE);
  } catch (error) {
    const there = await stat(path).catch(() => undefined);
    if (there?.isDirectory() !== true) throw error;
  }
}
