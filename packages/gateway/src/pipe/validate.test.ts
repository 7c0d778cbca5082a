import { ServiceError, utf8 } from '@remora/base';
import {
  COMMAND_TRAITS,
  type Command,
  FIRST_EPOCH,
  type KvOp,
  type Query,
  rangeOp,
  SCAN_BYTES_MAX,
} from '@remora/protocol';
import { expect, test } from 'vitest';
import { REQUEST_LIMITS } from '../request-limits.ts';
import { validatePipeCommand, validatePipeQuery, validatePipeWatch } from './validate.ts';

const put = {
  type: 'put',
  key: utf8('k'),
  value: utf8('v'),
  lease: 0n,
  prevKv: false,
  ignoreValue: false,
  ignoreLease: false,
} as const;
const owner = { session: { lease: 1n, incarnation: 1 }, token: 't' };
const lock = { namespace: 'default', name: utf8('l') };

const SCAN = { type: 'scan', key: utf8(''), end: utf8(''), revision: 0, bytes: 1 } as const;

function codeOf(validate: () => void): string {
  try {
    validate();
  } catch (error) {
    return error instanceof ServiceError ? error.code : String(error);
  }
  return 'ok';
}

function sessionWith(count: number, bytes: number): Command {
  const named = Array.from({ length: count }, (_, i) => [`a${i}`, 'x'.repeat(bytes)]);
  return { type: 'leaseGrant', id: 1n, ttlMs: 5, attributes: Object.fromEntries(named) };
}

const commands: { name: string; command: Command; expect: string }[] = [
  { name: 'a put', command: { type: 'kv', op: put }, expect: 'ok' },
  { name: 'an empty key', command: { type: 'kv', op: { ...put, key: utf8('') } }, expect: 'EMPTY_KEY' },
  {
    name: 'a value of 1.5 MiB and a key',
    command: { type: 'kv', op: { ...put, value: Buffer.alloc(1.5 * 1024 * 1024) } },
    expect: 'REQUEST_TOO_LARGE',
  },
  {
    name: 'a value that is ignored',
    command: { type: 'kv', op: { ...put, ignoreValue: true } },
    expect: 'INVALID_ARGUMENT',
  },
  {
    name: 'a comparison without a key',
    command: {
      type: 'txn',
      txn: { compare: [{ key: utf8(''), result: 'equal', target: { of: 'mod', value: 1 } }], success: [], failure: [] },
    },
    expect: 'EMPTY_KEY',
  },
  {
    name: 'a lease without id',
    command: { type: 'leaseGrant', id: 0n, ttlMs: 5, attributes: {} },
    expect: 'INVALID_ARGUMENT',
  },
  {
    name: 'a lease without TTL',
    command: { type: 'leaseGrant', id: 1n, ttlMs: 0, attributes: {} },
    expect: 'INVALID_ARGUMENT',
  },
  { name: '16 attributes', command: sessionWith(16, 250), expect: 'ok' },
  { name: '17 attributes', command: sessionWith(17, 1), expect: 'INVALID_ARGUMENT' },
  { name: 'more than 4 KiB of attributes', command: sessionWith(2, 2_048), expect: 'INVALID_ARGUMENT' },
  { name: 'an expiry', command: { type: 'leaseExpire', id: 1n, incarnation: 1, term: 1 }, expect: 'INVALID_ARGUMENT' },
  ...(['leaseRegister', 'leaseRefer', 'leaseEnd', 'leaseSettle'] as const).map((type) => ({
    name: type,
    command: { type, id: 1n, incarnation: 1, span: { start: utf8('a'), end: utf8('b') } },
    expect: 'INVALID_ARGUMENT',
  })),
  { name: 'a noop', command: { type: 'noop' }, expect: 'INVALID_ARGUMENT' },
  {
    name: 'a split',
    command: { ...{ type: 'split', at: utf8('m'), childId: 9, replicas: [], keys: 0, bytes: 0 }, epoch: FIRST_EPOCH },
    expect: 'INVALID_ARGUMENT',
  },
  {
    name: 'a lock without a name',
    command: { type: 'lock', command: { type: 'forceRelease', lock: { ...lock, name: utf8('') } } },
    expect: 'INVALID_ARGUMENT',
  },
];
test.each(commands)('a command: $name is $expect', (row) => {
  const request = { command: row.command, requestId: 'r', timeoutMs: 1_000 };
  expect(codeOf(() => validatePipeCommand(request, REQUEST_LIMITS))).toBe(row.expect);
});

const notForClients = Object.entries(COMMAND_TRAITS).filter(([, { origin }]) => origin !== 'client');
test.each(notForClients)('a client cannot send the command %s', (type) => {
  const request = { command: { type } as Command, requestId: 'r', timeoutMs: 1_000 };
  expect(() => validatePipeCommand(request, REQUEST_LIMITS)).toThrow(`a client cannot send the command ${type}`);
});

const range = rangeOp({ key: utf8('k') });
const txnOf = (success: KvOp[]): Command => ({ type: 'txn', txn: { compare: [], success, failure: [] } });
const nested = (success: KvOp[]): KvOp => ({ type: 'txn', txn: { compare: [], success, failure: [] } });
const compare = { key: utf8('k'), result: 'equal', target: { of: 'value', value: utf8('12345678') } } as const;

const limited: { name: string; command: Command; expect: string }[] = [
  { name: '10 bytes', command: { type: 'kv', op: { ...put, value: utf8('123456789') } }, expect: 'ok' },
  { name: '11 bytes', command: { type: 'kv', op: { ...put, value: utf8('1234567890') } }, expect: 'REQUEST_TOO_LARGE' },
  {
    name: 'a delete up to a long key',
    command: { type: 'kv', op: { type: 'delete', key: utf8('k'), end: utf8('l234567890'), prevKv: false } },
    expect: 'REQUEST_TOO_LARGE',
  },
  { name: '2 operations', command: txnOf([range, range]), expect: 'ok' },
  { name: '3 operations', command: txnOf([range, range, range]), expect: 'TOO_MANY_OPERATIONS' },
  { name: '1 operation in another', command: txnOf([nested([range])]), expect: 'ok' },
  { name: '2 operations in another', command: txnOf([nested([range, range])]), expect: 'TOO_MANY_OPERATIONS' },
  {
    name: 'what is compared and put in 11 bytes',
    command: { type: 'txn', txn: { compare: [compare], success: [], failure: [put] } },
    expect: 'REQUEST_TOO_LARGE',
  },
  {
    name: 'attributes of 11 bytes',
    command: { type: 'leaseGrant', id: 1n, ttlMs: 5, attributes: { höst: 'abcdef' } },
    expect: 'REQUEST_TOO_LARGE',
  },
];
test.each(limited)('with 10 bytes and 2 operations allowed, $name is $expect', (row) => {
  const request = { command: row.command, requestId: 'r', timeoutMs: 1_000 };
  expect(codeOf(() => validatePipeCommand(request, { requestBytesMax: 10, txnOpsMax: 2 }))).toBe(row.expect);
});

test.each([0, -1, 60_001])('a time-out of %i ms is refused', (timeoutMs) => {
  const command: Command = { type: 'kv', op: put };
  expect(codeOf(() => validatePipeCommand({ command, requestId: 'r', timeoutMs }, REQUEST_LIMITS))).toBe(
    'INVALID_ARGUMENT',
  );
});

test('a command without a request id is refused', () => {
  const command: Command = { type: 'kv', op: put };
  expect(codeOf(() => validatePipeCommand({ command, requestId: '', timeoutMs: 5 }, REQUEST_LIMITS))).toBe(
    'INVALID_ARGUMENT',
  );
});

const queries: { name: string; query: Query; expect: string }[] = [
  { name: 'show', query: { type: 'lock', query: { type: 'show', lock } }, expect: 'ok' },
  {
    name: 'too many checks',
    query: { type: 'lock', query: { type: 'check', checks: new Array(1_001).fill({ lock, version: 1 }) } },
    expect: 'INVALID_ARGUMENT',
  },
  {
    name: 'a wait for the end of a grant',
    query: { type: 'grantEnd', lock, version: 1, session: owner.session },
    expect: 'ok',
  },
  {
    name: 'a wait for the end of a grant of no lock',
    query: { type: 'grantEnd', lock: { ...lock, name: utf8('') }, version: 1, session: owner.session },
    expect: 'INVALID_ARGUMENT',
  },
  { name: 'a wait', query: { type: 'lockAwait', lock, owner }, expect: 'ok' },
  { name: 'a scan', query: SCAN, expect: 'ok' },
  { name: 'a scan without room', query: { ...SCAN, bytes: 0 }, expect: 'INVALID_ARGUMENT' },
  { name: 'a scan of too much', query: { ...SCAN, bytes: SCAN_BYTES_MAX + 1 }, expect: 'INVALID_ARGUMENT' },
  { name: 'the closing of a revision', query: { type: 'closedRevision', revision: 5 }, expect: 'INVALID_ARGUMENT' },
  {
    name: 'a transaction that reads',
    query: {
      type: 'readTxn',
      txn: { compare: [], success: [range, nested([range])], failure: [] },
      serializable: false,
    },
    expect: 'ok',
  },
  {
    name: 'a transaction that would put something',
    query: { type: 'readTxn', txn: { compare: [], success: [], failure: [nested([put])] }, serializable: false },
    expect: 'INVALID_ARGUMENT',
  },
  {
    name: 'a wait without a token',
    query: { type: 'lockAwait', lock, owner: { ...owner, token: '' } },
    expect: 'INVALID_ARGUMENT',
  },
];
test.each(queries)('a query: $name is $expect', (row) => {
  expect(codeOf(() => validatePipeQuery({ query: row.query, timeoutMs: 1_000 }, REQUEST_LIMITS))).toBe(row.expect);
});

const watches: readonly { name: string; key: string; end?: string; expect: string }[] = [
  { name: 'without a key', key: '', expect: 'EMPTY_KEY' },
  { name: 'of one key', key: 'k', expect: 'ok' },
  { name: 'to the last key', key: 'k', end: '', expect: 'ok' },
  { name: 'of a span', key: 'k', end: 'k0', expect: 'ok' },
  { name: 'that ends at its first key', key: 'k', end: 'k', expect: 'INVALID_ARGUMENT' },
];
test.each(watches)('a watch $name is $expect', ({ key, end, expect: wanted }) => {
  const settings = { startRevision: 0, noPut: false, noDelete: false, prevKv: false };
  const span = { key: utf8(key), ...(end === undefined ? {} : { end: utf8(end) }) };
  expect(codeOf(() => validatePipeWatch({ kind: 'create', ...span, ...settings }))).toBe(wanted);
});
