import { createHash } from 'node:crypto';
import { ServiceError } from '@remora/base';
import { describe, expect, test } from 'vitest';
import {
  decodeCommand,
  decodeCommandResult,
  decodeQuery,
  decodeQueryResult,
  decodeResult,
  encodeCommand,
  encodeCommandResult,
  encodeQuery,
  encodeResult,
} from '../../../test/support/part-codecs.ts';
import type { Command } from '../command.ts';
import type { LeaseCommand, LeaseCommandResult } from '../lease-api.ts';
import type { Query, QueryResult } from '../query.ts';
import { type CommandBatch, decodeEntry, encodeEntry } from './entry.ts';
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

describe('the terms of a lease', () => {
  const condition = { heartbeatMs: 500.5, serverMisses: 4, holderMisses: 3 };
  const terms = { ttlMs: 2_002, condition };
  const change = { type: 'leaseChange', ...lease, number: 3 } as const;
  const grant = { type: 'leaseGrant', id: -1n, attributes: { host: 'a' } } as const;
  const about: readonly Command[] = [
    { ...change, ...terms },
    { ...change, ttlMs: 9_000_000_000_000 },
    { ...grant, ...terms },
  ];
  const revoke = { type: 'leaseRevoke', id: -1n, incarnation: 17 } as const;

  test.each([...about, { ...revoke, ifEmpty: true } as const])(
    'survive the wire in $type, whose entry has a format of its own',
    (command) => {
      expect(decodeCommand(overTheWire(encodeCommand(command)))).toEqual(command);
      const batch = { ...BATCH, commands: [{ requestId: 'r', deadlineMs: 5, command }] };
      expect(decodeEntry(encodeEntry(batch))).toEqual(batch);
      expect(encodeEntry(batch)[0]).toBe(7);
      expect(encodeEntry({ ...batch, block: { first: 7, count: 9 } })[0]).toBe(8);
    },
  );

  test.each<{ readonly plain: Command; readonly fields: number }>([
    { plain: { ...grant, ttlMs: 2_002 }, fields: 4 },
    { plain: revoke, fields: 3 },
  ])('leave $plain.type without them as it was', ({ plain, fields }) => {
    expect(encodeCommand(plain)).toHaveLength(fields);
    expect(encodeEntry({ ...BATCH, commands: [{ requestId: 'r', deadlineMs: 5, command: plain }] })[0]).toBe(1);
  });

  test('are what they were: change them only together with their version', () => {
    const commands = about.map((command) => ({ requestId: 'r', deadlineMs: 5, command }));
    expect(
      createHash('sha256')
        .update(encodeEntry({ ...BATCH, commands }))
        .digest('hex'),
    ).toBe('181933a80d7aca21e14917697a27a3a7be36c13f52fb071e3a00070f6f2f74b3');
  });

  test('damaged are INVALID_ARGUMENT', () => {
    for (const command of about) {
      const encoded = encodeCommand(command);
      for (let i = 1; i < encoded.length; i++) {
        expect(() => decodeCommand(encoded.with(i, 'x'))).toThrow(ServiceError);
      }
      expect(() => decodeCommand([...encoded, 0])).toThrow(ServiceError);
    }
    const result = { type: 'leaseChange', ttlMs: 7 } as const;
    expect(decodeCommandResult(overTheWire(encodeCommandResult(result)))).toEqual(result);
    expect(() => decodeCommandResult([24, 'x'])).toThrow(ServiceError);
  });
});

describe('checkpoints of a lease', () => {
  const about = { type: 'leaseCheckpoint', ...lease, term: 4 } as const;
  const checkpoints: readonly Command[] = [
    { ...about, remainingMs: 7_000 },
    { ...about, remainingMs: undefined },
  ];
  const commands = checkpoints.map((command) => ({ requestId: '', deadlineMs: 0, command }));

  test('survive the wire, in an entry of the format of leases, with their result', () => {
    expect(decodeEntry(encodeEntry({ ...BATCH, commands }))).toEqual({ ...BATCH, commands });
    expect(encodeEntry({ ...BATCH, commands })[0]).toBe(7);
    const result = { type: 'leaseCheckpoint' } as const;
    expect(decodeCommandResult(overTheWire(encodeCommandResult(result)))).toEqual(result);
  });

  test('are what they were: change them only together with their version', () => {
    const entry = encodeEntry({ ...BATCH, commands });
    expect(createHash('sha256').update(entry).digest('hex')).toBe(
      'ecbecf31a98ad00396c71c7c31c86f0067d6796cacd8a5dd927297ff3775662a',
    );
  });

  test('damaged are INVALID_ARGUMENT', () => {
    for (const command of checkpoints) {
      const encoded = encodeCommand(command);
      for (let i = 1; i < encoded.length; i++) {
        expect(() => decodeCommand(encoded.with(i, 'x'))).toThrow(ServiceError);
      }
      expect(() => decodeCommand([...encoded, 0])).toThrow(ServiceError);
    }
    expect(() => decodeCommandResult([25, 'x'])).toThrow(ServiceError);
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
