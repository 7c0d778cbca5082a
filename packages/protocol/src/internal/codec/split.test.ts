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
import { type CommandBatch, decodeEntry, encodeEntry } from './entry.ts';
import { packVersioned, unpackVersioned } from './wire.ts';

const SPLIT: Command = {
  ...{ type: 'split', at: Buffer.from([3, 0x6d]), epoch: { confVersion: 4, version: 2 }, childId: 9 },
  replicas: [
    { nodeId: 1, replicaId: 31 },
    { nodeId: 2, replicaId: 32 },
  ],
  ...{ keys: 1_000, bytes: 2 ** 40 },
};
const BATCH: CommandBatch = {
  ...{ rangeTimeMs: 12.5, wallMs: 1_700_000_000_000, epoch: { confVersion: 4, version: 2 } },
  commands: [{ requestId: '', deadlineMs: 0, command: SPLIT }],
};

describe('an entry that is a split', () => {
  test('is read as it was written', () => {
    expect(decodeEntry(encodeEntry(BATCH))).toEqual(BATCH);
  });

  test('has a format of its own, so that a program that knows no splits refuses it', () => {
    expect(encodeEntry(BATCH)[0]).toBe(3);
    const noop = { requestId: '', deadlineMs: 0, command: { type: 'noop' } } as const;
    expect(encodeEntry({ ...BATCH, commands: [noop] })[0]).toBe(1);
    expect(encodeEntry({ ...BATCH, block: { first: 7, count: 1 } })[0]).toBe(2);
  });

  test('is what it was: change it only together with its version', () => {
    expect(createHash('sha256').update(encodeEntry(BATCH)).digest('hex')).toBe(
      'c8ea9ef47b68edb49fa973e4ea67971d6889a5bcf3b3187e4ba523af649ededa',
    );
  });

  test.each([0, 1, 2, 3, 4, 5])('with field %i damaged is INVALID_ARGUMENT', (field) => {
    const [tag, fields] = encodeCommand(SPLIT);
    const damaged = (fields as unknown[]).with(field, 'x');
    expect(() => decodeCommand([tag, damaged])).toThrow(ServiceError);
  });
});

test('the result of a split survives the wire', () => {
  const result: CommandResult = { type: 'split', left: RANGE, right: { ...RANGE, rangeId: 9 } };
  const raw = unpackVersioned(1, packVersioned(1, encodeCommandResult(result)), 'result');
  expect(decodeCommandResult(raw)).toMatchObject({
    type: 'split',
    left: { rangeId: RANGE.rangeId },
    right: { rangeId: 9 },
  });
});
