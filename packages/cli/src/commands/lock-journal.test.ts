import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { defaultJournalDir, journalDir } from './lock-journal.ts';

const usable = async () => {};

test('a user without a home runs commands without a journal, unless one was asked for', async () => {
  const nowhere = () => {
    throw new Error('uv_os_homedir returned ENOENT');
  };
  expect(await journalDir(undefined, { env: {} }, { home: nowhere, requireUsable: usable })).toBeUndefined();
  expect(await journalDir(undefined, { env: {} }, { home: () => '/dev/null', requireUsable: usable })).toBeUndefined();
  const asked = journalDir('/dev/null/held', { env: {} }, { home: nowhere, requireUsable: usable });
  await expect(asked).rejects.toMatchObject({ exit: 'failed', message: expect.stringContaining('ENOTDIR') });
});

test("where the usual journal is another user's, commands run without one, unless it was asked for", async () => {
  const env = { XDG_STATE_HOME: mkdtempSync(join(tmpdir(), 'remora-state-')) };
  const home = () => '/nowhere';
  const requireUsable = async (path: string) => {
    throw new Error(`EACCES: permission denied, access '${path}'`);
  };
  try {
    const path = defaultJournalDir(env);
    expect(await journalDir(undefined, { env }, { home, requireUsable: usable })).toBe(path);
    expect(await journalDir(undefined, { env }, { home, requireUsable })).toBeUndefined();
    await expect(journalDir(path, { env }, { home, requireUsable })).rejects.toMatchObject({
      exit: 'failed',
      message: expect.stringContaining('EACCES'),
    });
  } finally {
    rmSync(env.XDG_STATE_HOME, { recursive: true });
  }
});
