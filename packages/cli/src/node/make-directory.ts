import { mkdir, stat } from 'node:fs/promises';
import { dirname } from 'node:path';

/**
 * Makes a directory, and those that it lies in. Node's own way to do so tries for ever where nobody can make one, as in
 * `/proc`, and hears no signal meanwhile.
 */
export async function makeDirectory(path: string): Promise<void> {
  const attempt = (): Promise<boolean> =>
    mkdir(path).then(
      () => true,
      (error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT' && dirname(path) !== path) return false;
        throw error;
      },
    );
  try {
    if (await attempt()) return;
    await makeDirectory(dirname(path));
    await mkdir(path);
  } catch (error) {
    const there = await stat(path).catch(() => undefined);
    if (there?.isDirectory() !== true) throw error;
  }
}
