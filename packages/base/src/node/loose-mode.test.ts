import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { warnOfLooseFile, warnOfLooseMode } from './loose-mode.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'remora-loose-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

test.each([
  { mode: 0o700, warns: false },
  { mode: 0o500, warns: false },
  { mode: 0o710, warns: true },
  { mode: 0o704, warns: true },
  { mode: 0o755, warns: true },
  { mode: 0o702, warns: true },
])('a directory with the mode $mode is warned about: $warns', async ({ mode, warns }) => {
  chmodSync(dir, mode);
  const logged: unknown[] = [];
  await warnOfLooseMode(dir, 'the data directory', { warn: (...line) => logged.push(line) });
  const warning = { dir, mode: mode.toString(8), advice: `run: chmod -R go-rwx ${dir}` };
  expect(logged).toEqual(warns ? [[warning, 'the data directory is accessible to other users']] : []);
});

test('a directory that is not there yet is no reason to warn', async () => {
  const logged: unknown[] = [];
  await warnOfLooseMode(join(dir, 'later'), 'the journal', { warn: (fields) => logged.push(fields) });
  expect(logged).toEqual([]);
});

test.each([
  { mode: 0o600, dirMode: 0o700, warns: [] },
  { mode: 0o600, dirMode: 0o755, warns: [] },
  { mode: 0o600, dirMode: 0o1777, warns: [] },
  { mode: 0o640, dirMode: 0o755, warns: ['the log is accessible to other users'] },
  { mode: 0o602, dirMode: 0o755, warns: ['the log is accessible to other users'] },
  { mode: 0o600, dirMode: 0o775, warns: ['the log can be replaced by other users'] },
  { mode: 0o600, dirMode: 0o702, warns: ['the log can be replaced by other users'] },
])('a file of mode $mode in a directory of mode $dirMode is warned about: $warns', async ({ mode, dirMode, warns }) => {
  const file = join(dir, 'log');
  writeFileSync(file, '');
  chmodSync(file, mode);
  chmodSync(dir, dirMode);
  const logged: unknown[] = [];
  await warnOfLooseFile(file, 'the log', { warn: (_fields, message) => logged.push(message) });
  expect(logged).toEqual(warns);
});

test('the warning about a file says what to run', async () => {
  const file = join(dir, 'log');
  writeFileSync(file, '');
  chmodSync(file, 0o644);
  chmodSync(dir, 0o777);
  const logged: unknown[] = [];
  await warnOfLooseFile(file, 'the log', { warn: (fields) => logged.push(fields) });
  expect(logged).toEqual([
    { file, mode: '644', advice: `run: chmod 600 ${file}` },
    { dir, mode: '777', advice: `run: chmod go-w ${dir}` },
  ]);
});

test('a pipe, a device, and a file that is not there are no reason to warn', async () => {
  const logged: unknown[] = [];
  for (const file of ['/dev/null', join(dir, 'none')]) {
    await warnOfLooseFile(file, 'the log', { warn: (fields) => logged.push(fields) });
  }
  expect(logged).toEqual([]);
});
