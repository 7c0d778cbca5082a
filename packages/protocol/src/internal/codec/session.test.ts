import { createHash } from 'node:crypto';
import { ServiceError } from '@remora/base';
import { describe, expect, test } from 'vitest';
import {
  decodeQuery,
  decodeQueryResult,
  decodeResult,
  encodeQuery,
  encodeQueryResult,
  encodeResult,
} from '../../../test/support/part-codecs.ts';
import { SESSION_QUERIES, SESSION_RESULTS } from '../../../test/support/samples.ts';
import { packVersioned, unpackVersioned } from './wire.ts';

function overTheWire(raw: unknown): unknown {
  return unpackVersioned(1, packVersioned(1, raw), 'test');
}

describe('questions about sessions, and their answers', () => {
  test('survive the wire', () => {
    for (const query of SESSION_QUERIES) expect(decodeQuery(overTheWire(encodeQuery(query)))).toEqual(query);
    for (const result of SESSION_RESULTS) {
      expect(decodeQueryResult(overTheWire(encodeQueryResult(result)))).toEqual(result);
      expect(decodeResult(overTheWire(encodeResult(result)))).toEqual(result);
    }
  });

  test('are what they were: a change that an older peer would misread gets a new tag', () => {
    const hash = createHash('sha256');
    for (const query of SESSION_QUERIES) hash.update(packVersioned(1, encodeQuery(query)));
    for (const result of SESSION_RESULTS) hash.update(packVersioned(1, encodeQueryResult(result)));
    expect(hash.digest('hex')).toBe('dedb6e23e28303780f616f317cf24291a907af847f5d8580d782aa00badc9857');
  });

  test('damaged are INVALID_ARGUMENT', () => {
    for (const query of SESSION_QUERIES) {
      // Only an owner may be absent.
      const needed = encodeQuery(query).length - ('owner' in query ? 1 : 0);
      for (let i = 1; i < needed; i++) {
        expect(() => decodeQuery(encodeQuery(query).with(i, null))).toThrow(ServiceError);
      }
      expect(() => decodeQuery([...encodeQuery(query), 0])).toThrow(ServiceError);
    }
    for (const result of SESSION_RESULTS) {
      expect(() => decodeQueryResult([...encodeQueryResult(result), 0])).toThrow(ServiceError);
      expect(() => decodeQueryResult(encodeQueryResult(result).with(1, 'x'))).toThrow(ServiceError);
    }
    const wrongMode = ['n', Buffer.from('l'), 't', 9, 0, 0, 0, 0];
    expect(() => decodeQueryResult([57, null, [wrongMode], false])).toThrow(ServiceError);
  });
});
