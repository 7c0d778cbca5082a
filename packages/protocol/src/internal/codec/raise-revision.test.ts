import { expect, test } from 'vitest';
import { decodeCommand, decodeCommandResult, encodeCommandResult } from '../../../test/support/part-codecs.ts';
import { BATCH } from '../../../test/support/samples.ts';
import { type CommandBatch, decodeEntry, encodeEntry } from './entry.ts';

const RAISE: CommandBatch = {
  ...BATCH,
  commands: [{ requestId: 'r', deadlineMs: 9, command: { type: 'raiseRevision', to: 2 ** 52 } }],
};

test('an entry that begins a restore has a format that only programs read that know it', () => {
  const bytes = encodeEntry(RAISE);
  expect(bytes[0]).toBe(4);
  expect(decodeEntry(bytes)).toEqual(RAISE);
  expect(decodeCommandResult(encodeCommandResult({ type: 'raiseRevision' }))).toEqual({ type: 'raiseRevision' });
});

test.each([-1, 1.5, 2 ** 53, 'x', undefined])('a revision of %s is no revision to raise to', (to) => {
  expect(() => decodeCommand([9, to])).toThrow('raiseRevision.to');
});
