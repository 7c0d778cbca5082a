import { utf8 } from '@remora/base';
import type { RemoraClient } from 'remora';
import { expect, test } from 'vitest';
import type { Shell } from '../shell.ts';
import { runUnderLock } from './lock-run.ts';

/** Ends well when it sees that an earlier holder left what its argument says. */
const SEES = 'process.exit(process.env.REMORA_LOCK_PREVIOUS_DATA === process.argv[1] ? 0 : 1)';

test.each([
  { name: 'text in two lines', left: utf8('row 7\n\tof ä'), seen: 'row 7\n\tof ä' },
  { name: 'nothing', left: undefined, seen: '' },
  { name: 'bytes that are no text', left: Buffer.of(0x61, 0xff), seen: 'a\\xff' },
  { name: 'text that no variable can carry', left: utf8('a\0b'), seen: 'a\\x00b' },
])('a command sees what an earlier holder left with the lock: $name', async ({ left, seen }) => {
  const held = {
    ...{ version: 7, previousData: left, signal: new AbortController().signal },
    onRevoke: () => () => {},
    release: async () => {},
  };
  const client = {
    rwLock: () => ({ write: async () => held }),
    nameCommand: async () => {},
  } as unknown as RemoraClient;
  const flags = { namespace: 'default', endpoints: '', timeout: 1_000, discover: true };
  const shell = { err: () => {} } as unknown as Shell;
  const argv = [process.execPath, '-e', SEES, '--', seen];
  expect(await runUnderLock(client, { name: 'l', argv, flags, shell })).toBe(0);
});
