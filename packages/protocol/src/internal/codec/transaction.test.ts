import { createHash } from 'node:crypto';
import { ServiceError, utf8 } from '@remora/base';
import { describe, expect, test } from 'vitest';
import {
  decodeCommand,
  decodeCommandResult,
  decodeQuery,
  decodeQueryResult,
  encodeCommand,
  encodeCommandResult,
  encodeQuery,
  encodeQueryResult,
} from '../../../test/support/part-codecs.ts';
import type { Command } from '../command.ts';
import type { CommandResult } from '../command-result.ts';
import type { PartOp, TxnCommit, TxnResolve } from '../transaction-api.ts';
import { type CommandBatch, decodeEntry, encodeEntry } from './entry.ts';
import { packVersioned, unpackVersioned } from './wire.ts';

const txnId = 'a1b2c3/7';
const requestId = 'request';
const primaryKey = utf8('\x03a');
const commit: TxnCommit = { type: 'commit', revision: 2 ** 53 - 1, branches: [0, 3] };
const put: PartOp['op'] = {
  ...{ type: 'put', key: utf8('k'), value: utf8('v'), lease: 7n },
  ...{ prevKv: true, ignoreValue: false, ignoreLease: false },
};
const ops: readonly PartOp[] = [
  { number: 0, branch: 0, op: put },
  { number: 2, branch: 3, op: { type: 'delete', key: utf8('a'), end: utf8('b'), prevKv: false } },
];
const span = { start: primaryKey, end: utf8('\x03c') };
const resolve: TxnResolve = { type: 'txnResolve', txnId, part: 2, span, requestId, resolution: commit };

const COMMANDS: readonly Command[] = [
  {
    ...{ type: 'txnPrepare', txnId, part: 1, requestId, primaryKey, expiresMs: 1_234.5, ops },
    compares: [{ key: utf8('k'), end: utf8('l'), result: 'less', target: { of: 'version', value: 3 } }],
  },
  { type: 'txnDecide', txnId, primaryKey, requestId, decision: { ...commit, others: [span] } },
  { type: 'txnDecide', txnId, primaryKey, requestId: '', decision: { type: 'abort' } },
  { type: 'txnDecide', txnId, primaryKey, requestId: '', decision: { type: 'push' } },
  resolve,
  { ...resolve, resolution: { type: 'abort' } },
  { type: 'txnForget', txnId, primaryKey },
];

const results = [{ number: 0, key: Buffer.from('k'), result: { type: 'put', prev: undefined } }] as const;
const part: CommandResult = { type: 'txnPart', txnId, commit, results };
const RESULTS: readonly CommandResult[] = [
  {
    ...{ type: 'txnPrepare', answer: 'prepared', floor: 9, compares: ['holds', 'fails', 'nothing'], changing: [0, 3] },
    failures: [
      { number: 0, branch: 0, code: 'LEASE_NOT_FOUND', message: 'no lease' },
      { number: 2, branch: 3, code: 'COMPACTED', message: 'gone', details: { compactRevision: 4 } },
    ],
  },
  { type: 'txnPrepare', answer: 'conflict', holders: [{ txnId: 'other', requestId: '', primaryKey }] },
  { type: 'txnPrepare', answer: 'remembered', revision: 5, result: part },
  { type: 'txnPrepare', answer: 'remembered', revision: 5, result: { type: 'delete', deleted: 1, prev: [] } },
  { type: 'txnPrepare', answer: 'aborted' },
  { type: 'txnDecide', outcome: { state: 'pending', remainingMs: 12 }, results: undefined },
  { type: 'txnDecide', outcome: { state: 'committed', commit }, results },
  { type: 'txnDecide', outcome: { state: 'aborted' }, results: undefined },
  { type: 'txnResolve', results },
  { type: 'txnResolve', results: undefined },
  { type: 'txnForget' },
  part,
];

const BATCH: CommandBatch = {
  ...{ rangeTimeMs: 12.5, wallMs: 1_700_000_000_000, epoch: { confVersion: 4, version: 2 } },
  commands: COMMANDS.map((command) => ({ requestId: 'r', deadlineMs: 9, command })),
};

function overTheWire(raw: unknown): unknown {
  return unpackVersioned(1, packVersioned(1, raw), 'sample');
}

/** Bytes come back as Buffers. */
function canonical(value: unknown): unknown {
  if (value instanceof Uint8Array) return `bytes:${Buffer.from(value).toString('hex')}`;
  if (Array.isArray(value)) return value.map(canonical);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, canonical(field)]));
}

function* damages(raw: unknown): Generator<unknown> {
  yield null;
  yield 'text';
  yield -5;
  if (!Array.isArray(raw)) return;
  yield [...raw, 1];
  for (let i = 0; i < raw.length; i++) for (const damaged of damages(raw[i])) yield raw.with(i, damaged);
}

function expectDecodesOrRefuses(decode: () => unknown): void {
  try {
    decode();
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== 'INVALID_ARGUMENT') throw error;
  }
}

describe('transactions over several ranges', () => {
  test('an entry with them has a format that only programs read that know them', () => {
    const bytes = encodeEntry(BATCH);
    expect(bytes[0]).toBe(5);
    expect(canonical(decodeEntry(bytes))).toEqual(canonical(BATCH));
    const noop = { requestId: '', deadlineMs: 0, command: { type: 'noop' } } as const;
    expect(encodeEntry({ ...BATCH, commands: [noop, ...BATCH.commands] })[0]).toBe(5);
    expect(encodeEntry({ ...BATCH, commands: [noop] })[0]).toBe(1);
  });

  test.each(RESULTS)('a result survives the wire: %j', (result) => {
    expect(canonical(decodeCommandResult(overTheWire(encodeCommandResult(result))))).toEqual(canonical(result));
  });

  test('an answer to a prepare that an earlier program stored does not say which branches change something', () => {
    const stored = [10, 0, [9, [], []]];
    const result = { type: 'txnPrepare', answer: 'prepared', floor: 9, compares: [], failures: [] };
    expect(decodeCommandResult(overTheWire(stored))).toEqual({ ...result, changing: undefined });
  });

  test('the question how one stands survives the wire, and its answer', () => {
    const query = { type: 'txnStatus', txnId, primaryKey } as const;
    expect(canonical(decodeQuery(overTheWire(encodeQuery(query))))).toEqual(canonical(query));
    const answer = { type: 'txnStatus', outcome: { state: 'committed', commit } } as const;
    expect(decodeQueryResult(overTheWire(encodeQueryResult(answer)))).toEqual(answer);
  });

  test('the format is what it was: change it only together with its version', () => {
    const hash = createHash('sha256').update(encodeEntry(BATCH));
    for (const result of RESULTS) hash.update(packVersioned(1, encodeCommandResult(result)));
    expect(hash.digest('hex')).toBe('7ee945a775df22fdabd22fe10cca14813ce97886fedf26b5dd4884cf50856f4c');
  });

  test('a damaged field is INVALID_ARGUMENT, never another error', () => {
    for (const command of COMMANDS) {
      for (const damaged of damages(overTheWire(encodeCommand(command)))) {
        expectDecodesOrRefuses(() => decodeCommand(damaged));
      }
    }
    for (const result of RESULTS) {
      for (const damaged of damages(overTheWire(encodeCommandResult(result)))) {
        expectDecodesOrRefuses(() => decodeCommandResult(damaged));
      }
    }
  });

  test('what is remembered is no prepare: results do not nest without end', () => {
    let raw: unknown = [10, 3, null];
    for (let depth = 0; depth < 100_000; depth++) raw = [10, 2, [5, raw]];
    expect(() => decodeCommandResult(raw)).toThrow('remembered');
  });
});
