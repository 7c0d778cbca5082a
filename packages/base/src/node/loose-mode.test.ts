import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { warnOfLooseMode } from './loose-mode.ts';

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
