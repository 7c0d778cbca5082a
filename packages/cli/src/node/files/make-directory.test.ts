import { existsSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { makeDirectory } from './make-directory.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'remora-directory-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

describe('making a directory', () => {
  test('makes those that it lies in, and leaves one that is there', async () => {
    const path = join(dir, 'a/b/c');
    await makeDirectory(path);
    await makeDirectory(path);
    expect(existsSync(path)).toBe(true);
    symlinkSync(path, join(dir, 'link'));
    await makeDirectory(join(dir, 'link'));
  });

  test('keeps other users out, whatever the umask is', async () => {
    const usual = process.umask(0);
    try {
      await makeDirectory(join(dir, 'a/b'));
    } finally {
      process.umask(usual);
    }
    expect(['a', 'a/b'].map((path) => statSync(join(dir, path)).mode & 0o777)).toEqual([0o700, 0o700]);
  });

  test('at the same time makes it once', async () => {
    const path = join(dir, 'a/b/c');
    await Promise.all(Array.from({ length: 5 }, () => makeDirectory(path)));
    expect(existsSync(path)).toBe(true);
  });

  // Node's own way to do so never ended in /proc.
  test.skipIf(!existsSync('/proc/self'))('where nobody can make one (below /proc) is refused', async () => {
    await expect(makeDirectory('/proc/nope/x')).rejects.toMatchObject({ code: 'ENOENT' });
  });

  test('in what is no directory is refused', async () => {
    writeFileSync(join(dir, 'file'), '');
    await expect(makeDirectory(join(dir, 'file'))).rejects.toMatchObject({ code: 'EEXIST' });
    await expect(makeDirectory(join(dir, 'file/x'))).rejects.toMatchObject({ code: 'ENOTDIR' });
  });
});
