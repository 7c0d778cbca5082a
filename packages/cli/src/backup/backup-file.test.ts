import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, onTestFinished, test } from 'vitest';
import { writeBackupFile } from './backup-file.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'remora-backup-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const written = (path: string) => writeBackupFile(path, (put) => put(Buffer.from('new')));

test('a backup takes the place of the one before only when it is whole', async () => {
  const path = join(dir, 'nightly');
  writeFileSync(path, 'old');
  const broken = writeBackupFile(path, async (put) => {
    await put(Buffer.from('ne'));
    throw new Error('the cluster is gone');
  });
  await expect(broken).rejects.toThrow('the cluster is gone');
  expect([readFileSync(path, 'utf8'), readdirSync(dir)]).toEqual(['old', ['nightly']]);
  await written(path);
  expect([readFileSync(path, 'utf8'), readdirSync(dir)]).toEqual(['new', ['nightly']]);
});

test.each(['a directory', 'a directory/', 'no directory/nightly'])(
  'where none can be, %j, that is told in a line, and nothing is left',
  async (name) => {
    mkdirSync(join(dir, 'a directory'));
    await expect(written(`${dir}/${name}`)).rejects.toMatchObject({
      ...{ name: 'CommandError', exit: 'failed', message: expect.stringMatching(/^cannot write /) },
    });
    expect([readdirSync(dir), readdirSync(join(dir, 'a directory'))]).toEqual([['a directory'], []]);
  },
);

test('what is there and no file, a socket say, is not replaced', async () => {
  const path = join(dir, 'socket');
  const server = createServer().listen(path);
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const before = statSync(path).ino;
  await expect(written(path)).rejects.toMatchObject({
    exit: 'failed',
    message: expect.stringContaining('not a regular file'),
  });
  expect(statSync(path).ino).toBe(before);
});
