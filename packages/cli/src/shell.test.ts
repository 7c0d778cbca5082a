import { type ErrorCode, ServiceError } from '@remora/base';
import { expect, test } from 'vitest';
import { reportFailure, type Shell } from './shell.ts';

test.each<[ErrorCode, number]>([
  ['LOCK_NOT_HELD', 1],
  ['UNAVAILABLE', 69],
  ['DEADLINE_EXCEEDED', 69],
  ['UNKNOWN_OUTCOME', 77],
  ['RESULT_LOST', 77],
])('%s ends a command with exit code %i', (code, exit) => {
  const told: string[] = [];
  const shell = { err: (line: string) => told.push(line) } as unknown as Shell;
  expect(reportFailure(new ServiceError(code, 'why'), shell)).toBe(exit);
  expect(told).toEqual([`remora: why (${code})`]);
});
