import { createHash } from 'node:crypto';
import { ServiceError } from '@remora/base';
import { describe, expect, test } from 'vitest';
import type { Query, QueryResult } from '../command.ts';
import type { LeaseCommand, LeaseCommandResult } from '../lease-api.ts';
import { decodeCommand, decodeCommandResult, encodeCommand, encodeCommandResult } from './command.ts';
import { type CommandBatch, decodeEntry, encodeEntry } from './entry.ts';
import { decodeQuery, decodeQueryResult, encodeQuery } from './query.ts';
import { decodeResult, encodeResult } from './range.ts';
import { packVersioned, unpackVersioned } from './wire.ts';

const lease = { id: 0x1234_5678_9abc_def0n, incarnation: 17 };
const span = { start: Buffer.from([3, 0x61]), end: Buffer.from([3, 0x6d]) };
const COMMANDS: readonly LeaseCommand[] = [
  { type: 'leaseRegister', ...lease, span },
  { type: 'leaseRefer', ...lease, span },
  { type: 'leaseEnd', id: -1n, incarnation: 17, span },
  { type: 'leaseSettle', ...lease, span: { ...span, end: Buffer.from([4]) } },
];
const RESULTS: readonly LeaseCommandResult[] = [
  { type: 'leaseRegister', incarnation: 17 },
  { type: 'leaseRefer' },
  { type: 'leaseEnd', covered: span, more: true },
  { type: 'leaseSettle' },
];
const BATCH: CommandBatch = {
  ...{ rangeTimeMs: 12.5, wallMs: 1_700_000_000_000, epoch: { confVersion: 4, version: 2 } },
  commands: COMMANDS.map((command, i) => ({ requestId: `r${i}`, deadlineMs: i, command })),
};

function overTheWire(raw: unknown): unknown {
  return unpackVersioned(1, packVersioned(1, raw), 'test');
}

describe('commands about leases of other ranges', () => {
  test('are read as they were written, in an entry and by themselves, with their results', () => {
    expect(decodeEntry(encodeEntry(BATCH))).toEqual(BATCH);
    for (const command of COMMANDS) expect(decodeCommand(overTheWire(encodeCommand(command)))).toEqual(command);
    for (const result of RESULTS) {
      expect(decodeCommandResult(overTheWire(encodeCommandResult(result)))).toEqual(result);
      expect(decodeResult(overTheWire(encodeResult(result)))).toEqual(result);
    }
  });

  test('give their entry a format of its own, with a block and without, whatever else is in it', () => {
    const noop = { requestId: '', deadlineMs: 0, command: { type: 'noop' } } as const;
    const block = { first: 7, count: 9 };
    const mixed = { ...BATCH, commands: [noop, ...BATCH.commands] };
    expect(encodeEntry(mixed)[0]).toBe(7);
    expect(encodeEntry({ ...mixed, block })[0]).toBe(8);
    expect(decodeEntry(encodeEntry({ ...mixed, block }))).toEqual({ ...mixed, block });
    expect(encodeEntry({ ...BATCH, commands: [noop] })[0]).toBe(1);
    expect(encodeEntry({ ...BATCH, commands: [noop], block })[0]).toBe(2);
  });

  test('are what they were: change them only together with their version', () => {
    expect(createHash('sha256').update(encodeEntry(BATCH)).digest('hex')).toBe(
      '8c6d3a5f2a6fb10c4e5d4b6a7b869ac004f97245f43ca3015fb426417565a271',
    );
  });

  test.each(COMMANDS.flatMap((command) => [1, 2, 3].map((field) => ({ command, field }))))(
    '$command.type with field $field damaged is INVALID_ARGUMENT',
    ({ command, field }) => {
      expect(() => decodeCommand(encodeCommand(command).with(field, 'x'))).toThrow(ServiceError);
    },
  );

  test.each(RESULTS)('$type with a field too many is INVALID_ARGUMENT', (result) => {
    expect(() => decodeCommandResult([...encodeCommandResult(result), 0])).toThrow(ServiceError);
  });
});

test('the question for the keys of a lease, and its answer, survive the wire', () => {
  const query: Query = { type: 'leaseKeys', ...lease };
  const result: QueryResult = { type: 'leaseKeys', keys: [Buffer.from('k')] };
  expect(decodeQuery(overTheWire(encodeQuery(query)))).toEqual(query);
  expect(decodeResult(overTheWire(encodeResult(result)))).toEqual(result);
  expect(() => decodeQuery([50, 'x', 1])).toThrow(ServiceError);
  expect(() => decodeQueryResult([50, 'x'])).toThrow(ServiceError);
});
