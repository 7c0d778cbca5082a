import { expect, test } from 'vitest';
import { journalDir } from './lock-journal.ts';

test('a user without a home runs commands without a journal, unless one was asked for', async () => {
  const nowhere = () => {
    throw new Error('uv_os_homedir returned ENOENT');
  };
  expect(await journalDir(undefined, { env: {} }, nowhere)).toBeUndefined();
  expect(await journalDir(undefined, { env: {} }, () => '/dev/null')).toBeUndefined();
  await expect(journalDir('/dev/null/held', { env: {} }, nowhere)).rejects.toThrow('ENOTDIR');
});
