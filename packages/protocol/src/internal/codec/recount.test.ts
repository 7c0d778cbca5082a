import { expect, test } from 'vitest';
import { decodeCommand, decodeCommandResult, encodeCommandResult } from '../../../test/support/part-codecs.ts';
import { BATCH } from '../../../test/support/samples.ts';
import { type CommandBatch, decodeEntry, encodeEntry } from './entry.ts';

const RECOUNT: CommandBatch = {
  ...BATCH,
  commands: [
    { requestId: '', deadlineMs: 0, command: { type: 'recount', version: 3, index: 70, keys: -12, bytes: 2 ** 40 } },
  ],
};

test('an entry that corrects what was counted has a format that only programs read that know it', () => {
  const bytes = encodeEntry(RECOUNT);
  expect(bytes[0]).toBe(9);
  expect(decodeEntry(bytes)).toEqual(RECOUNT);
  expect(decodeCommandResult(encodeCommandResult({ type: 'recount' }))).toEqual({ type: 'recount' });
});

test.each([
  [26, -1, 7, 0, 0],
  [26, 1, 1.5, 0, 0],
  [26, 1, 7, 0.5, 0],
  [26, 1, 7, 0, 2 ** 53],
  [26, 1, 7, 0],
])('%s corrects nothing', (...raw) => {
  expect(() => decodeCommand(raw)).toThrow('recount');
});
