import type { Command } from '@remora/protocol';
import { expect, test } from 'vitest';
import { put } from '../../test/support/state-bed.ts';
import { shownRevision } from './numbering.ts';

const write: Command = { type: 'kv', op: put('a', '1') };
const block = { first: 8, count: 3 };

test.each([
  { name: 'a change answers with its own revision', last: 9, block, command: write, expect: 9 },
  {
    name: 'what changed nothing answers with the last one before its block',
    last: 3,
    block,
    command: write,
    expect: 7,
  },
  {
    name: 'a range that counts by itself answers with its last one',
    last: 3,
    block: undefined,
    command: write,
    expect: 3,
  },
  {
    name: 'a command that needs no revision learns none',
    last: 3,
    block,
    command: { type: 'noop' } as const,
    expect: 3,
  },
])('$name (N5)', ({ last, block, command, expect: expected }) => {
  expect(shownRevision(command, last, block)).toBe(expected);
});
