import { describe, expect, test } from 'vitest';
import { cellBeside, cellNear, firstCell, hottest, totalOf } from '../src/logic/heat.ts';

const matrix = {
  stepMs: 60_000,
  times: [0, 60_000, 120_000],
  borders: ['-', 'key:a', 'key:a\\x00', 'key:m', 'key:z'],
  values: [[0, 60, 0, 6], null, [0, 120, 0, 0]],
};

describe('the cell near a place', () => {
  test.each([
    { name: 'is the one that is pointed at', at: [0.1, 0.3, 0], from: 'key:a' },
    { name: 'is a hot one within reach', at: [0.1, 0.2, 0.1], from: 'key:a' },
    { name: 'is the hotter one of two within reach', at: [0.1, 0.6, 0.2], from: 'key:a' },
    { name: 'is no hot one out of reach', at: [0.1, 0.2, 0.01], from: '-' },
    { name: 'stays where nothing near is hotter', at: [0.9, 0.9, 0.1], from: 'key:m' },
    { name: 'is in the last minute at the right edge', at: [1, 0.3, 0], from: 'key:a', time: 120_000 },
  ] as const)('$name', ({ at: [x, y, reach], name: _, from, ...more }) => {
    expect(cellNear(matrix, x, y, reach)).toMatchObject({ from, ...more });
  });

  test('does not exist where nothing is recorded', () => {
    expect(cellNear({ times: [], borders: [], values: [] }, 0.5, 0.5, 0.1)).toBeUndefined();
  });
});

describe('the keyboard', () => {
  test('begins at the hottest cell of the last minute', () => {
    expect(firstCell(matrix)).toEqual({ time: 120_000, from: 'key:a', to: 'key:a\\x00', value: 120 });
  });

  test.each([
    { step: { lines: -1 }, to: { time: 60_000, from: 'key:a', value: 0 } },
    { step: { columns: 1 }, to: { time: 120_000, from: 'key:m', value: 0 } },
  ] as const)('moves by $step', ({ step, to }) => {
    expect(cellBeside(matrix, { time: 120_000, from: 'key:a' }, step)).toMatchObject(to);
  });

  test('stops at the edges, and begins again if the cell has left the map', () => {
    expect(cellBeside(matrix, { time: 120_000, from: 'key:a' }, { lines: 1 })).toBeUndefined();
    expect(cellBeside(matrix, { time: 120_000, from: 'key:a' }, { columns: -1 })).toBeUndefined();
    expect(cellBeside(matrix, { time: 7, from: 'key:a' }, { lines: 1 })).toEqual(firstCell(matrix));
  });
});

test('the hottest keys are those of the last known minutes, per second', () => {
  const hot = hottest(matrix, 2, 5);
  expect(hot).toEqual([
    { from: 'key:a', to: 'key:a\\x00', perS: 1.5 },
    { from: 'key:m', to: 'key:z', perS: 0.05 },
  ]);
  expect(hottest(matrix, 1, 5)).toEqual([{ from: 'key:a', to: 'key:a\\x00', perS: 2 }]);
  expect(hottest(matrix, 2, 1)).toHaveLength(1);
  expect(hottest({ ...matrix, values: [null, null, null] }, 5, 5)).toEqual([]);
});

test('the total is that of all known minutes', () => {
  expect(totalOf(matrix)).toBe(186);
});
