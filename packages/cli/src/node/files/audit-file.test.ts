import { mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openAuditFile } from './audit-file.ts';

let dir = '';
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'remora-audit-'));
});
afterEach(() => rm(dir, { recursive: true }));

test('the file is appended to, is for its own user only, and is opened again when it was moved', async () => {
  const path = join(dir, 'audit.log');
  const umask = process.umask(0);
  const first = await openAuditFile(path).finally(() => process.umask(umask));
  await first.append('1\n');
  await first.close();
  const file = await openAuditFile(path);
  await file.append('2\n');
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  await rename(path, `${path}.1`);
  await file.append('3\n');
  file.reopen();
  await file.append('4\n');
  await file.close();
  expect(await readFile(`${path}.1`, 'utf8')).toBe('1\n2\n3\n');
  expect(await readFile(path, 'utf8')).toBe('4\n');
});

test('a file that cannot be opened stops the start, and a later one is tried again', async () => {
  await expect(openAuditFile(join(dir, 'none', 'audit.log'))).rejects.toMatchObject({
    exit: 'usage',
    message: expect.stringContaining('cannot open --audit-log'),
  });
  const path = join(dir, 'audit.log');
  const file = await openAuditFile(path);
  await rename(dir, `${dir}-moved`);
  file.reopen();
  await expect(file.append('1\n')).rejects.toThrow('ENOENT');
  await rename(`${dir}-moved`, dir);
  await file.append('1\n');
  await file.close();
  expect(await readFile(path, 'utf8')).toBe('1\n');
});
