import type { BinaryWriter } from '@bufbuild/protobuf/wire';
import { expect, test } from 'vitest';
import { RangeRequest } from '../gen/etcd/etcdserverpb/rpc.ts';
import { EMPTY_BYTES, written } from './shared-writer.ts';

const request = (key: string): RangeRequest => RangeRequest.create({ key: Buffer.from(key) });

test('messages are the bytes of a new writer, and stay as they are', () => {
  const keys = ['a', 'b'.repeat(200), 'c'.repeat(100_000), '', 'd'.repeat(70)];
  const messages = keys.map((key) => written(RangeRequest, request(key)));
  messages.forEach((bytes, index) => {
    expect(Buffer.isBuffer(bytes)).toBe(true);
    expect(bytes.equals(RangeRequest.encode(request(keys[index] ?? '')).finish())).toBe(true);
  });
});

test('a message that cannot be encoded leaves nothing behind', () => {
  const failing = {
    encode: (_message: RangeRequest, writer: BinaryWriter): BinaryWriter => writer.uint32(10).fork().uint32(-1),
  };
  expect(() => written(failing, request('x'))).toThrow();
  expect(written(RangeRequest, request('y'))).toEqual(Buffer.from(RangeRequest.encode(request('y')).finish()));
});

test('absent bytes are one object', () => {
  expect(RangeRequest.decode(Buffer.alloc(0)).key).toBe(EMPTY_BYTES);
});
