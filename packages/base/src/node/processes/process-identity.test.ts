import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, test } from 'vitest';
import type { ProcessIdentity } from '../../process-identity.ts';
import { identityOf, isGone } from './process-identity.ts';
import { type ProcessTable, systemProcessTable } from './process-table.ts';

/** Sees process 10, started at 500, and no other. */
const table: ProcessTable = {
  host: 'h',
  boot: 'b',
  space: 's',
  pid: 10,
  startOf: (pid) => (pid === 10 ? '500' : undefined),
  list: () => undefined,
  hasVariable: () => false,
  signal: () => 'gone',
};
const one: ProcessIdentity = { host: 'h', boot: 'b', space: 's', pid: 10, start: '500' };

describe('another process', () => {
  const rows: readonly { name: string; other: ProcessIdentity; table?: Partial<ProcessTable>; gone: boolean }[] = [
    { name: 'that runs', other: one, gone: false },
    { name: 'that does not run', other: { ...one, pid: 11 }, gone: true },
    { name: 'whose id is that of another one by now', other: { ...one, start: '400' }, gone: true },
    { name: 'from before the machine was started anew', other: { ...one, boot: 'a' }, gone: true },
    { name: 'of another machine', other: { ...one, host: 'i', boot: 'c', pid: 11 }, gone: false },
    { name: 'of another container', other: { ...one, space: 't', pid: 11 }, gone: false },
    { name: 'whose boot was not told', other: { ...one, boot: '' }, gone: false },
    { name: 'whose start was not told', other: { ...one, start: '' }, gone: false },
    { name: 'where starts are not told', other: one, table: { startOf: () => '' }, gone: false },
  ];
  test.each(rows)('$name: gone is $gone', ({ other, table: change, gone }) => {
    expect(isGone(other, { ...table, ...change })).toBe(gone);
  });
});

test('a real process is there until it has ended', async () => {
  const own = systemProcessTable();
  expect(isGone(identityOf(own), own)).toBe(false);
  const child = spawn(process.execPath, ['-e', 'process.stdin.resume()'], { stdio: ['pipe', 'ignore', 'ignore'] });
  const pid = child.pid ?? 0;
  const identity = identityOf({ ...own, pid });
  expect(isGone(identity, own)).toBe(false);
  child.stdin.end();
  await once(child, 'exit');
  expect(isGone(identity, own)).toBe(true);
});
