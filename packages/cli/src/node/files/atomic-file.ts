import { closeSync, fsyncSync, openSync, renameSync, writeFileSync } from 'node:fs';
import { open, readFile, rename } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { OWN_FILE_MODE } from '@remora/base';

/**
 * Replaces a file so that after a crash it holds either the old contents or the new ones, durably once this resolves.
 */
async function writeFileAtomically(path: string, text: string): Promise<void> {
  const temporary = `${path}.tmp`;
  const file = await open(temporary, 'w', OWN_FILE_MODE);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  await syncDirectory(dirname(path));
}

/** Makes creations, renames and removals in a directory durable. */
export async function syncDirectory(path: string): Promise<void> {
  const dir = await open(path, 'r');
  try {
    await dir.sync();
  } finally {
    await dir.close();
  }
}

export function writeJsonAtomically(path: string, value: unknown): Promise<void> {
  return writeFileAtomically(path, `${JSON.stringify(value, null, 2)}\n`);
}

/** The same for callers that must not yield in between. */
export function writeJsonAtomicallySync(path: string, value: unknown): void {
  const temporary = `${path}.tmp`;
  withFileSync(temporary, 'w', (fd) => {
    writeFileSync(fd, `${JSON.stringify(value, null, 2)}\n`);
    fsyncSync(fd);
  });
  renameSync(temporary, path);
  withFileSync(dirname(path), 'r', fsyncSync);
}

function withFileSync(path: string, flags: string, use: (fd: number) => void): void {
  const fd = openSync(path, flags, OWN_FILE_MODE);
  try {
    use(fd);
  } finally {
    closeSync(fd);
  }
}

/** Returns the contents of a JSON file in `dir`; undefined if there is no such file. Rejects if it is not JSON. */
export async function readJsonFile(dir: string, name: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(join(dir, name), 'utf8'));
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
