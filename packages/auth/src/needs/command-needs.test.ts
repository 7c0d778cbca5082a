// Every command and every query is in a row: one without a row does not compile.
import type { LockCommand, LockId, LockQuery } from '@remora/lock';
import type { Command, KvOp, PlainOp, Query } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { needsOfCommand, needsOfQuery } from './command-needs.ts';

const b = (text: string): Buffer => Buffer.from(text);
const LOCK: LockId = { namespace: 'shop', name: b('l') };
const OWNER = { session: { lease: 7n, incarnation: 1 }, token: 't' };

/** In short: `read a`, `write a..z`, `end lease 7.1`, `use session 7.1`, `steer shop/l`, `root`. */
function said(command: Command | Query): readonly string[] {
  const needs = isQuery(command) ? needsOfQuery(command) : needsOfCommand(command);
  return needs.map((need) => {
    switch (need.type) {
      case 'keys':
        return `${need.access} ${b2t(need.key)}${need.end === undefined ? '' : `..${b2t(need.end)}`}`;
      case 'leaseKeys':
        return `read keys of ${need.lease}`;
      case 'lease':
      case 'session':
        return `${need.use} ${need.type} ${need.lease}.${need.incarnation}`;
      case 'sessions':
        return `sessions of ${need.owner ?? 'all'}`;
      case 'lock':
        return `${need.verb} ${need.namespace}/${b2t(need.name)}`;
      case 'locks':
        return `${need.verb} ${need.namespace}/${b2t(need.prefix)}*`;
      default:
        return need.type;
    }
  });
}

const b2t = (bytes: Uint8Array): string => Buffer.from(bytes).toString();

const QUERIES = [
  ...['range', 'readTxn', 'leaseKeepAlive', 'leaseTimeToLive', 'leases', 'status', 'lockAwait', 'grantEnd'],
  ...['closedRevision', 'scan', 'txnStatus', 'leaseKeys', 'sessions', 'session'],
];

function isQuery(one: Command | Query): one is Query {
  return QUERIES.includes(one.type) || (one.type === 'lock' && 'query' in one);
}

const get = (key: string, end?: string): PlainOp => ({
  ...{ type: 'range', key: b(key), limit: 0, revision: 0, sortOrder: 'none', sortTarget: 'key' },
  ...{ keysOnly: false, countOnly: false },
  ...{ minModRevision: 0, maxModRevision: 0, minCreateRevision: 0, maxCreateRevision: 0 },
  ...(end !== undefined && { end: b(end) }),
});
const put = (key: string, more: { readonly lease?: bigint; readonly prevKv?: boolean } = {}): PlainOp => ({
  ...{ type: 'put', key: b(key), value: b('v'), lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false },
  ...more,
});
const del = (key: string, end: string, prevKv = false): PlainOp => ({
  ...{ type: 'delete', key: b(key), end: b(end), prevKv },
});
const txn = (success: readonly KvOp[], failure: readonly KvOp[] = []): KvOp => ({
  type: 'txn',
  txn: {
    compare: [{ key: b('c'), result: 'equal', target: { of: 'version', value: 0 } }],
    success,
    failure,
  },
});

describe('operations on keys', () => {
  const rows: readonly { readonly name: string; readonly op: PlainOp; readonly needs: readonly string[] }[] = [
    { name: 'a read', op: get('a'), needs: ['read a'] },
    { name: 'a read of a span', op: get('a', 'z'), needs: ['read a..z'] },
    { name: 'a read to the last key', op: get('a', ''), needs: ['read a..'] },
    { name: 'a put', op: put('a'), needs: ['write a'] },
    { name: 'a put that returns the pair before (KN2)', op: put('a', { prevKv: true }), needs: ['write a', 'read a'] },
    { name: 'a put with a lease (KN3)', op: put('a', { lease: 7n }), needs: ['write a', 'attach lease 7.0'] },
    { name: 'a delete', op: del('a', 'z'), needs: ['write a..z'] },
    { name: 'a delete that returns the pairs (KN2)', op: del('a', 'z', true), needs: ['write a..z', 'read a..z'] },
  ];
  test.each(rows)('$name', ({ op, needs }) => {
    expect(said({ type: 'kv', op })).toEqual(needs);
  });

  test('a transaction needs what both of its branches do, at every depth (KN1)', () => {
    const whole = txn([put('a'), txn([get('b')], [del('d', 'f')])], [txn([put('g', { lease: 7n })])]);
    if (whole.type !== 'txn') throw new Error('a transaction');
    const needs = [
      ...['read c', 'write a', 'read c', 'read b', 'write d..f'],
      ...['read c', 'write g', 'attach lease 7.0'],
    ];
    expect(said({ type: 'txn', txn: whole.txn })).toEqual(needs);
    expect(said({ type: 'readTxn', txn: whole.txn, serializable: false })).toEqual(needs);
  });

  test('a comparison with a lock needs to read it', () => {
    const one = { compare: [{ lock: LOCK, version: 3 }], success: [], failure: [] };
    expect(said({ type: 'txn', txn: one })).toEqual(['read shop/l']);
  });

  test('a part of a transaction needs what is in it', () => {
    const ops = [{ number: 0, branch: 0, op: put('a') }];
    const compares = [{ key: b('c'), result: 'equal' as const, target: { of: 'version' as const, value: 0 } }];
    const part = { txnId: 't', part: 0, requestId: '', primaryKey: b('k'), expiresMs: 1, compares, ops };
    expect(said({ type: 'txnPrepare', ...part })).toEqual(['read c', 'write a']);
  });
});

describe('locks', () => {
  const mine = (verb: string) => [`${verb} shop/l`, 'use session 7.1'];
  const commands: Readonly<Record<LockCommand['type'], { readonly given: object; readonly needs: readonly string[] }>> =
    {
      acquire: { given: { owner: OWNER }, needs: mine('acquire') },
      release: { given: { owner: OWNER }, needs: mine('acquire') },
      cancel: { given: { owner: OWNER }, needs: mine('acquire') },
      downgrade: { given: { owner: OWNER }, needs: mine('acquire') },
      setData: { given: { owner: OWNER }, needs: mine('acquire') },
      setDepth: { given: { owner: OWNER }, needs: mine('acquire') },
      forceRelease: { given: {}, needs: ['steer shop/l'] },
      setCapacity: { given: { capacity: 3 }, needs: ['steer shop/l'] },
      forget: { given: {}, needs: ['steer shop/l'] },
      revoke: { given: { by: '', reason: '', forMs: 1 }, needs: ['steer shop/l'] },
      endDelay: { given: { owner: OWNER }, needs: ['root'] },
    };
  test.each(Object.entries(commands))('%s', (type, { given, needs }) => {
    expect(said({ type: 'lock', command: { type, lock: LOCK, ...given } as unknown as LockCommand })).toEqual(needs);
  });

  const queries: Readonly<Record<LockQuery['type'], { readonly given: object; readonly needs: readonly string[] }>> = {
    show: { given: { lock: LOCK }, needs: ['read shop/l'] },
    list: { given: { namespace: 'shop', prefix: b('l') }, needs: ['read shop/l*'] },
    search: { given: { namespace: 'shop', prefix: b('l'), contains: b('x') }, needs: ['read shop/l*'] },
    namespaces: { given: { after: 'shop' }, needs: ['read /*'] },
    check: {
      given: {
        checks: [
          { lock: LOCK, version: 1 },
          { lock: { namespace: 'x', name: b('y') }, version: 2 },
        ],
      },
      needs: ['read shop/l', 'read x/y'],
    },
  };
  test.each(Object.entries(queries))('%s', (type, { given, needs }) => {
    expect(said({ type: 'lock', query: { type, ...given } as unknown as LockQuery })).toEqual(needs);
  });
});

test.each<{ readonly one: Command | Query; readonly needs: readonly string[] }>([
  { one: { type: 'leaseGrant', id: 7n, ttlMs: 1, attributes: {} }, needs: ['anyUser'] },
  {
    one: { type: 'leaseChange', id: 7n, incarnation: 1, number: 1, ttlMs: 1 },
    needs: ['anyUser', 'change session 7.1'],
  },
  { one: { type: 'leaseRevoke', id: 7n, incarnation: 0 }, needs: ['anyUser', 'end lease 7.0'] },
  { one: { type: 'leaseKeepAlive', id: 7n, incarnation: 2 }, needs: ['anyUser', 'renew lease 7.2'] },
  { one: { type: 'leaseTimeToLive', id: 7n, keys: true }, needs: ['anyUser', 'read keys of 7'] },
  { one: { type: 'leaseTimeToLive', id: 7n, keys: false }, needs: ['anyUser'] },
  { one: { type: 'leaseKeys', id: 7n, incarnation: 1 }, needs: ['read keys of 7'] },
  { one: { type: 'leases' }, needs: ['root'] },
  { one: { type: 'sessions', after: 0n, limit: 1, attributes: {} }, needs: ['sessions of all'] },
  { one: { type: 'sessions', after: 0n, limit: 1, attributes: {}, owner: 'ada' }, needs: ['sessions of ada'] },
  { one: { type: 'session', id: 7n, incarnation: 0 }, needs: ['anyUser', 'show session 7.0'] },
  { one: { type: 'compact', revision: 1 }, needs: ['root'] },
  { one: { type: 'raiseRevision', to: 1 }, needs: ['root'] },
  { one: { type: 'scan', key: b('a'), end: b(''), revision: 0, bytes: 1 }, needs: ['read a..'] },
  { one: { type: 'status' }, needs: ['anyUser'] },
  { one: { type: 'closedRevision', revision: 0 }, needs: ['anyUser'] },
  { one: { type: 'noop' }, needs: ['root'] },
])('$one.type', ({ one, needs }) => {
  expect(said(one)).toEqual(needs);
});
