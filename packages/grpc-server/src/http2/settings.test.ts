import { expect, test } from 'vitest';
import { ERROR, SETTING } from './protocol.ts';
import { applySettings, type SettingsSink } from './settings.ts';

function payload(...pairs: readonly (readonly [id: number, value: number])[]): Buffer {
  const bytes = Buffer.alloc(6 * pairs.length);
  pairs.forEach(([id, value], index) => {
    bytes.writeUInt16BE(id, 6 * index);
    bytes.writeUInt32BE(value, 6 * index + 2);
  });
  return bytes;
}

function recorder(): SettingsSink & { readonly windows: number[]; readonly tables: number[] } {
  const windows: number[] = [];
  const tables: number[] = [];
  return {
    windows,
    tables,
    headerTableBytes: (bytes) => void tables.push(bytes),
    streamWindowBytes: (bytes) => {
      windows.push(bytes);
      return true;
    },
  };
}

test('thousands of windows in one frame are one change, to the last of them', () => {
  const sink = recorder();
  const pairs = Array.from({ length: 2_700 }, (_, index) => [SETTING.initialWindowSize, index] as const);
  expect(applySettings(payload(...pairs), sink)).toBeUndefined();
  expect(sink.windows).toEqual([2_699]);
});

test('each size of the table is passed on, because the smallest counts', () => {
  const sink = recorder();
  expect(applySettings(payload([SETTING.headerTableSize, 0], [SETTING.headerTableSize, 4_096]), sink)).toBeUndefined();
  expect(sink).toMatchObject({ tables: [0, 4_096], windows: [] });
});

test('a wrong value is found before a right one of the same setting', () => {
  const sink = recorder();
  const pairs = [
    [SETTING.initialWindowSize, 2 ** 31],
    [SETTING.initialWindowSize, 1],
  ] as const;
  expect(applySettings(payload(...pairs), sink)).toMatchObject({ error: ERROR.flowControlError });
  expect(sink.windows).toEqual([]);
});
