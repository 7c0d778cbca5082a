import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { OWN_DIR_MODE } from '@remora/base';

/**
 * Makes a directory for this user alone, and those that it lies in. Node's own way to do so tries for ever where nobody
 * can make one, as in `/proc`, and hears no signal meanwhile.
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
