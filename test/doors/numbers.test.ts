/**
 * Numbers that callers name, at every door of a gateway. Each is refused by INVALID_ARGUMENT, or means what its caller
 * meant: none is ever cut to fewer bits, which would make it another number.
 */
import { SeededRandom, ServiceError, utf8 } from '@remora/base';
import { type Command, type PipeCommand, type PipeQuery, pipeCommand, pipeQuery, type Query } from '@remora/protocol';
import type * as etcd from '@remora/protocol/etcd';
import type * as pb from '@remora/protocol/remora';
import { describe, expect, test } from 'vitest';
import { AdminApi } from '../../packages/gateway/src/admin/admin-api.ts';
import type { Backend } from '../../packages/gateway/src/backend.ts';
import { Headers } from '../../packages/gateway/src/etcd/headers.ts';
import { toCompactRevision, toPutOp, toRangeOp } from '../../packages/gateway/src/etcd/kv-requests.ts';
import { EtcdLease } from '../../packages/gateway/src/etcd/lease-service.ts';
import { Fields } from '../../packages/gateway/src/http/fields.ts';
import { parseSession } from '../../packages/gateway/src/http/lock-json.ts';
import { LockApi } from '../../packages/gateway/src/lock/lock-service.ts';
import { SessionApi } from '../../packages/gateway/src/lock/session-service.ts';
import { pack } from '../../packages/protocol/src/internal/codec/pack.ts';
import { unpackVersioned } from '../../packages/protocol/src/internal/codec/wire.ts';

const CALL = { timeoutMs: 1_000, callerMs: undefined, seen: { newest: 0 }, principal: undefined };
const INT64_MAX = 2n ** 63n - 1n;
const INT64_MIN = -(2n ** 63n);

/** What the backend was asked for, or the code of the refusal. */
function asked(call: (backend: Backend) => unknown): Command | Query | string {
  let seen: Command | Query | undefined;
  const backend = {
    ...{ nodeId: 1, view: () => ({ clusterId: 'c' }), check: () => {} },
    command: (command: Command) => {
      seen = command;
      return () => {};
    },
    query: (query: Query) => {
      seen = query;
      return () => {};
    },
  } as unknown as Backend;
  return refusalOf(() => call(backend)) ?? seen ?? 'nothing was asked for';
}

function refusalOf(call: () => unknown): string | undefined {
  try {
    call();
    return undefined;
  } catch (error) {
    return error instanceof ServiceError ? error.code : `a raw ${String(error)}`;
  }
}

const lease = (backend: Backend): EtcdLease => new EtcdLease(backend, new Headers(backend), new SeededRandom(1));
const sessionOf = (id: bigint, incarnation = 1n): pb.Session => ({ id, incarnation });
const LOCK: pb.LockId = { namespace: 'n', name: Buffer.from('l') };
const owner = (session: pb.Session): pb.Owner => ({ session, token: 't' });
const done = (): void => {};

const encodePipeCommand = (request: PipeCommand) => pack(1, pipeCommand.encodeRequest(request));
const decodePipeCommand = (bytes: Uint8Array) => pipeCommand.decodeRequest(unpackVersioned(1, bytes, 'a command'));
const encodePipeQuery = (request: PipeQuery) => pack(1, pipeQuery.encodeRequest(request));
const decodePipeQuery = (bytes: Uint8Array) => pipeQuery.decodeRequest(unpackVersioned(1, bytes, 'a query'));

/** Whatever a message can carry. */
const IDS = [1n, 5n, INT64_MAX, -5n, INT64_MIN];

describe('the id of a lease of 64 bits is what is asked for, bit by bit', () => {
  test.each(IDS)('%s', (id) => {
    const revoked = { type: 'leaseRevoke', id, incarnation: 0 };
    expect(asked((backend) => lease(backend).revoke({ ID: id }, CALL, done))).toEqual(revoked);
    const left = asked((backend) => lease(backend).timeToLive({ ID: id, keys: false }, CALL, done));
    expect(left).toMatchObject({ type: 'leaseTimeToLive', id });
    const granted = asked((backend) => lease(backend).grant({ ID: id, TTL: 5n }, CALL, done));
    expect(granted).toMatchObject({ type: 'leaseGrant', id });
    expect(toPutOp(put({ lease: id })).lease).toBe(id);
    expect(parseSession(`${BigInt.asUintN(64, id).toString(16)}.7`)).toEqual({ lease: id, incarnation: 7 });
    const closed = asked((backend) => {
      const request = { session: sessionOf(id), requestId: '' };
      return new LockApi(backend, new SeededRandom(1)).closeSession(request, CALL, done);
    });
    expect(closed).toEqual({ type: 'leaseRevoke', id, incarnation: 1 });
    const command = { type: 'leaseRevoke', id, incarnation: 0 } as const;
    const request = { command, requestId: 'r', timeoutMs: 1, deadlineMs: undefined, waitMs: undefined };
    expect(decodePipeCommand(encodePipeCommand(request)).command).toEqual(command);
    const query = { type: 'leaseKeepAlive', id, incarnation: 0 } as const;
    expect(decodePipeQuery(encodePipeQuery({ query, timeoutMs: 1 })).query).toEqual(query);
  });
});

/** More than 64 bits. */
const TOO_LONG = [2n ** 63n, 2n ** 64n, 2n ** 64n + 5n, INT64_MIN - 1n, 10n ** 30n];

describe('an id of more than 64 bits is refused where it is encoded, and not cut', () => {
  test.each(TOO_LONG)('%s', (id) => {
    const op = { type: 'put', key: utf8('k'), value: utf8('v'), lease: id } as const;
    const all = { prevKv: false, ignoreValue: false, ignoreLease: false };
    const commands: readonly Command[] = [
      { type: 'leaseRevoke', id, incarnation: 0 },
      { type: 'leaseGrant', id, ttlMs: 5, attributes: {} },
      { type: 'kv', op: { ...op, ...all } },
    ];
    const encode = (command: Command) =>
      encodePipeCommand({ command, requestId: 'r', timeoutMs: 1, deadlineMs: undefined, waitMs: undefined });
    expect(commands.map((command) => refusalOf(() => encode(command)))).toEqual(commands.map(() => 'INVALID_ARGUMENT'));
    const queries: readonly Query[] = [
      { type: 'leaseKeepAlive', id, incarnation: 0 },
      { type: 'leaseTimeToLive', id, keys: false },
      { type: 'session', id, incarnation: 0 },
    ];
    const ask = (query: Query) => encodePipeQuery({ query, timeoutMs: 1 });
    expect(queries.map((query) => refusalOf(() => ask(query)))).toEqual(queries.map(() => 'INVALID_ARGUMENT'));
  });

  test.each(['1'.repeat(17), '-5.1', '0.1', '5.99999999999999999', 'x.1', '5'])('%s as text over HTTP', (text) => {
    expect(refusalOf(() => parseSession(text))).toBe('INVALID_ARGUMENT');
  });
});

const OUT_OF_COUNTS = [-1n, INT64_MIN, 2n ** 53n, INT64_MAX];

describe('a count beyond what numbers tell apart, or below 0, is refused by the calls of locks', () => {
  test.each(OUT_OF_COUNTS)('%s', (value) => {
    const rows: Record<string, (backend: Backend) => unknown> = {
      'incarnation of a session': (backend) =>
        new LockApi(backend, new SeededRandom(1)).closeSession(
          { session: sessionOf(5n, value), requestId: '' },
          CALL,
          done,
        ),
      'incarnation of an owner': (backend) =>
        new LockApi(backend, new SeededRandom(1)).release(
          { lock: LOCK, owner: owner(sessionOf(5n, value)), all: true, attempt: 0, requestId: '' },
          CALL,
          done,
        ),
      'a fencing version': (backend) =>
        new LockApi(backend, new SeededRandom(1)).check({ checks: [{ lock: LOCK, version: value }] }, CALL, done),
      'for how long a lock is asked for': (backend) =>
        new LockApi(backend, new SeededRandom(1)).revoke(
          { lock: LOCK, by: '', reason: '', forMs: value, requestId: '' },
          CALL,
          done,
        ),
      'the TTL of a session': (backend) =>
        new LockApi(backend, new SeededRandom(1)).openSession(
          { ttlMs: value, condition: undefined, attributes: {}, requestId: '' },
          CALL,
          done,
        ),
      'another TTL': (backend) =>
        new SessionApi(backend).change(
          { session: sessionOf(5n), number: 1, ttlMs: value, condition: undefined, requestId: '' },
          CALL,
          done,
        ),
    };
    const found = Object.entries(rows).map(([what, call]) => [what, asked(call)]);
    expect(found).toEqual(Object.keys(rows).map((what) => [what, 'INVALID_ARGUMENT']));
  });

  test.each(OUT_OF_COUNTS)('%s, a revision that an operator names', async (revision) => {
    const api = new AdminApi({ backend: { view: () => ({ ranges: [] }) } } as never);
    // 0 is the newest: what is below is not to be taken for it.
    for (const call of [() => api.compact({ revision }, CALL), () => api.beginRestore({ revision }, CALL)]) {
      await expect(call()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' });
    }
  });

  test('as are numbers of JSON that are no whole ones, or out of their bounds', () => {
    for (const value of [0.5, -1, 2 ** 53, 1e300, '5', true, {}]) {
      const read = () => new Fields({ version: value }).integer('version', { min: 1, max: Number.MAX_SAFE_INTEGER });
      expect([value, refusalOf(read)]).toEqual([value, 'INVALID_ARGUMENT']);
    }
  });
});

describe("numbers of etcd's messages, of which its clients may send any, mean what they mean in etcd", () => {
  const range = (more: Partial<etcd.RangeRequest>) =>
    toRangeOp({
      ...{ key: Buffer.from('k'), rangeEnd: Buffer.alloc(0), limit: 0n, revision: 0n, sortOrder: 0, sortTarget: 0 },
      ...{ serializable: false, keysOnly: false, countOnly: false },
      ...{ minModRevision: 0n, maxModRevision: 0n, minCreateRevision: 0n, maxCreateRevision: 0n },
      ...more,
    });

  test.each([
    { value: INT64_MIN, means: 0 },
    { value: -1n, means: 0 },
    { value: 2n ** 53n, means: Number.MAX_SAFE_INTEGER },
    { value: INT64_MAX, means: Number.MAX_SAFE_INTEGER },
  ])('$value as a limit or a revision', ({ value, means }) => {
    expect([range({ limit: value }).limit, range({ revision: value }).revision]).toEqual([means, means]);
    if (value >= 0n) expect(toCompactRevision(value)).toBe(means);
    else expect(refusalOf(() => toCompactRevision(value))).toBe('COMPACTED');
  });

  test('a TTL above what etcd takes is refused, one below a second is a second', () => {
    const grant = (TTL: bigint) => asked((backend) => lease(backend).grant({ ID: 5n, TTL }, CALL, done));
    expect([grant(INT64_MAX), grant(9_000_000_001n)]).toEqual(['LEASE_TTL_TOO_LARGE', 'LEASE_TTL_TOO_LARGE']);
    expect([grant(INT64_MIN), grant(0n)]).toMatchObject([{ ttlMs: 1_000 }, { ttlMs: 1_000 }]);
  });
});

function put(more: Partial<etcd.PutRequest>): etcd.PutRequest {
  const key = Buffer.from('k');
  return { key, value: Buffer.from('v'), lease: 0n, prevKv: false, ignoreValue: false, ignoreLease: false, ...more };
}
