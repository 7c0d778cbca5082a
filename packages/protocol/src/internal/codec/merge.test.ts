import { createHash } from 'node:crypto';
import { ServiceError } from '@remora/base';
import { describe, expect, test } from 'vitest';
import {
  decodeCommand,
  decodeCommandResult,
  encodeCommand,
  encodeCommandResult,
} from '../../../test/support/part-codecs.ts';
import { RANGE } from '../../../test/support/samples.ts';
import type { Command } from '../command.ts';
import type { CommandResult } from '../command-result.ts';
import type { SealedRange } from '../merge-api.ts';
import { type CommandBatch, decodeEntry, encodeEntry } from './entry.ts';
import { packVersioned, unpackVersioned } from './wire.ts';

const EPOCH = { confVersion: 4, version: 2 };
const ROUND = { targetId: 7, round: 3 };
const SEALED: SealedRange = {
  descriptor: { ...RANGE, start: Buffer.from([3]), end: Buffer.from([3, 0x6d]), rangeId: 9 },
  ...{ index: 2 ** 40, revision: 77 },
};
const COMMANDS: readonly Command[] = [
  { type: 'seal', epoch: EPOCH, into: ROUND },
  { type: 'merge', epoch: EPOCH, round: 3, source: SEALED },
  { type: 'refuseMerge', round: 3 },
  { type: 'unseal', from: ROUND },
];
const RESULTS: readonly CommandResult[] = [
  { type: 'seal', sealed: SEALED },
  { type: 'merge', range: SEALED.descriptor },
  { type: 'refuseMerge' },
  { type: 'unseal' },
];

function entryOf(command: Command): CommandBatch {
  const commands = [{ requestId: '', deadlineMs: 0, command }];
  return { rangeTimeMs: 12.5, wallMs: 1_700_000_000_000, epoch: EPOCH, commands };
}

describe.each(COMMANDS)('an entry that is a step of a merge: $type', (command) => {
  test('is read as it was written', () => {
    expect(decodeEntry(encodeEntry(entryOf(command)))).toEqual(entryOf(command));
  });

  test('has a format of its own, so that a program that knows no merges refuses it', () => {
    expect(encodeEntry(entryOf(command))[0]).toBe(6);
  });

  test('with any field damaged is INVALID_ARGUMENT', () => {
    const fields = encodeCommand(command);
    for (let i = 1; i < fields.length; i++) {
      expect(() => decodeCommand(fields.with(i, 'x'))).toThrow(ServiceError);
      expect(() => decodeCommand(fields.slice(0, i))).toThrow(ServiceError);
    }
  });
});

test('the entries of a merge are what they were: change them only together with their version', () => {
  const hash = createHash('sha256');
  for (const command of COMMANDS) hash.update(encodeEntry(entryOf(command)));
  expect(hash.digest('hex')).toBe('ebe11d0ae68da2d0ece53eb3bd029489bb864e51cae5a04f32beeea99120ebd1');
});

test.each(RESULTS)('the result of a $type survives the wire', (result) => {
  const raw = unpackVersioned(1, packVersioned(1, encodeCommandResult(result)), 'result');
  expect(decodeCommandResult(raw)).toEqual(result);
});
