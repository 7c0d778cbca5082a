import { createHash } from 'node:crypto';
import { FIRST_VERSION, versionOf } from '@remora/base';
import { describe, expect, test } from 'vitest';
import { BATCH, BLOCK_BATCH } from '../../../test/support/samples.ts';
import { type CommandBatch, decodeEntry, encodeEntry } from './entry.ts';
import { packVersioned } from './wire.ts';

const SECOND = versionOf('0.2') ?? 0;

describe('an entry of version 0.2', () => {
  test.each([
    { name: 'with a block', batch: BLOCK_BATCH },
    { name: 'without one', batch: BATCH },
    { name: 'without commands', batch: { ...BATCH, commands: [] } },
  ])('comes back whole, $name', ({ batch }) => {
    const entry: CommandBatch = { ...batch, version: SECOND };
    const bytes = encodeEntry(entry);
    expect(bytes[0]).toBe(10);
    expect(encodeEntry(decodeEntry(bytes))).toEqual(bytes);
    const { version, block, rangeTimeMs, epoch } = decodeEntry(bytes);
    expect({ version, block, rangeTimeMs, epoch }).toEqual({
      ...{ version: SECOND, block: entry.block, rangeTimeMs: batch.rangeTimeMs, epoch: batch.epoch },
    });
  });

  test('names a later version as it names its own: the applier refuses what it does not know', () => {
    expect(decodeEntry(encodeEntry({ ...BATCH, version: 7_003 })).version).toBe(7_003);
  });

  test('has no second form for version 0.1', () => {
    expect(encodeEntry({ ...BATCH, version: FIRST_VERSION })).toEqual(encodeEntry(BATCH));
    const disguised = packVersioned(10, [FIRST_VERSION, 1, 0, 1, 1, 0, 0]);
    expect(() => decodeEntry(disguised)).toThrow(/log entry/);
  });

  test.each([
    { name: 'a block without revisions', header: [SECOND, 1, 0, 1, 1, 9, 0] },
    { name: 'a block that begins nowhere', header: [SECOND, 1, 0, 1, 1, 0, 9] },
    { name: 'a short header', header: [SECOND, 1, 0, 1, 1, 0] },
    { name: 'a part of a command', header: [SECOND, 1, 0, 1, 1, 0, 0, ''] },
  ])('is refused with $name', ({ header }) => {
    expect(() => decodeEntry(packVersioned(10, header))).toThrow();
  });

  test('stays as it is: a change needs a new version', () => {
    const digest = createHash('sha256')
      .update(encodeEntry({ ...BLOCK_BATCH, version: SECOND }))
      .digest('hex');
    expect(digest).toBe('f8c7f01acef6b6c1875ba9e886fc777bc815ee97b3360dd71e7b41d79bda339f');
  });
});
