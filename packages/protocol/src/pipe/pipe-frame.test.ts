import { ServiceError } from '@remora/base';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodePipeFrame, encodePipeFrame } from './pipe-frame.ts';

test('a body of any length survives', () => {
  for (const length of [0, 1, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152]) {
    const body = Buffer.alloc(length, 3);
    expect(Buffer.from(decodePipeFrame(encodePipeFrame(body))).equals(body)).toBe(true);
  }
});

test('is protobuf: field 1, length-delimited', () => {
  expect(encodePipeFrame(Buffer.from('abc')).toString('hex')).toBe('0a03616263');
  expect(encodePipeFrame(Buffer.alloc(300)).subarray(0, 3).toString('hex')).toBe('0aac02');
});

const rows: { name: string; hex: string; expect: string }[] = [
  { name: 'nothing', hex: '', expect: '' },
  { name: 'an unknown varint before the body', hex: '10ff010a0161', expect: '61' },
  { name: 'an unknown 64-bit field after the body', hex: `0a016119${'00'.repeat(8)}`, expect: '61' },
  { name: 'an unknown text field', hex: '1202ffff0a0162', expect: '62' },
  { name: 'a body that is repeated: the last one counts', hex: '0a01610a0162', expect: '62' },
];
test.each(rows)('reads $name', (row) => {
  expect(Buffer.from(decodePipeFrame(Buffer.from(row.hex, 'hex'))).toString('hex')).toBe(row.expect);
});

test('anything else is INVALID_ARGUMENT', () => {
  for (const hex of ['0a', '0a05616263', '0affffffff7f', '0b', '10', '10ffffffffffffffffffffff', '0d0000']) {
    expect(() => decodePipeFrame(Buffer.from(hex, 'hex'))).toThrow(ServiceError);
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      try {
        decodePipeFrame(bytes);
      } catch (error) {
        if (!(error instanceof ServiceError) || error.code !== 'INVALID_ARGUMENT') throw error;
      }
    }),
  );
});
