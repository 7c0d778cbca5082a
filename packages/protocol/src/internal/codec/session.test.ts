import { createHash } from 'node:crypto';
import { ServiceError } from '@remora/base';
import { describe, expect, test } from 'vitest';
import type { SessionQuery, SessionQueryResult } from '../session-api.ts';
import { decodeQuery, decodeQueryResult, encodeQuery, encodeQueryResult } from './query.ts';
import { decodeResult, encodeResult } from './range.ts';
import { packVersioned, unpackVersioned } from './wire.ts';

const INFO = { id: -7n, incarnation: 17, ttlMs: 2_000, remainingMs: 12.5, attributes: { host: 'a', '': 'b' } };
const LOCK = { lock: { namespace: 'n', name: Buffer.from([0, 255]) }, token: 't', permits: 2, depth: 1, position: 0 };
const CONDITION = { heartbeatMs: 500, serverMisses: 4, holderMisses: 3 };
const QUERIES: readonly SessionQuery[] = [
  { type: 'sessions', after: 0x1234_5678_9abc_def0n, limit: 10, attributes: { host: 'a' } },
  { type: 'session', id: -7n, incarnation: 17 },
];
const RESULTS: readonly SessionQueryResult[] = [
  { type: 'sessions', sessions: [INFO, { ...INFO, condition: CONDITION }], next: -1n },
  { type: 'session', session: undefined, locks: [], more: false },
  { type: 'session', session: INFO, locks: [{ ...LOCK, mode: 'permits', version: 5 }], more: true },
  { type: 'session', session: INFO, locks: [{ ...LOCK, mode: 'upgrade', version: 0 }], more: false },
];

function overTheWire(raw: unknown): unknown {
  return unpackVersioned(1, packVersioned(1, raw), 'test');
}

describe('questions about sessions, and their answers', () => {
  test('survive the wire', () => {
    for (const query of QUERIES) expect(decodeQuery(overTheWire(encodeQuery(query)))).toEqual(query);
    for (const result of RESULTS) {
      expect(decodeQueryResult(overTheWire(encodeQueryResult(result)))).toEqual(result);
      expect(decodeResult(overTheWire(encodeResult(result)))).toEqual(result);
    }
  });

  test('are what they were: a change that an older peer would misread gets a new tag', () => {
    const hash = createHash('sha256');
    for (const query of QUERIES) hash.update(packVersioned(1, encodeQuery(query)));
    for (const result of RESULTS) hash.update(packVersioned(1, encodeQueryResult(result)));
    expect(hash.digest('hex')).toBe('4045a37b9bad55aab5c2aea49e3460dd3d36902d411bfda1fdfcfd7516594131');
  });

  test('damaged are INVALID_ARGUMENT', () => {
    for (const query of QUERIES) {
      for (let i = 1; i < encodeQuery(query).length; i++) {
        expect(() => decodeQuery(encodeQuery(query).with(i, null))).toThrow(ServiceError);
      }
      expect(() => decodeQuery([...encodeQuery(query), 0])).toThrow(ServiceError);
    }
    for (const result of RESULTS) {
      expect(() => decodeQueryResult([...encodeQueryResult(result), 0])).toThrow(ServiceError);
      expect(() => decodeQueryResult(encodeQueryResult(result).with(1, 'x'))).toThrow(ServiceError);
    }
    const wrongMode = ['n', Buffer.from('l'), 't', 9, 0, 0, 0, 0];
    expect(() => decodeQueryResult([57, null, [wrongMode], false])).toThrow(ServiceError);
  });
});
