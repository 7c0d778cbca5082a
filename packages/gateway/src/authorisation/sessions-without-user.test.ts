import { type Logger, ServiceError, silentLogger } from '@remora/base';
import type { Query, QueryResult } from '@remora/protocol';
import { expect, test } from 'vitest';
import type { BackendDone } from '../backend.ts';
import { warnOfSessionsWithoutUser } from './sessions-without-user.ts';

/** What is logged when ranges list that many sessions on each page. */
async function logged(pages: readonly number[] | ServiceError): Promise<readonly object[]> {
  const lines: object[] = [];
  const logger: Logger = { ...silentLogger, warn: (fields: object) => void lines.push(fields) };
  const query = (asked: Query, _options: object, done: BackendDone<QueryResult>): (() => void) => {
    if (asked.type !== 'sessions') throw new Error(`${asked.type} is asked`);
    expect(asked.owner).toBe('');
    if (pages instanceof ServiceError) done(pages, undefined);
    else {
      const at = Number(asked.after);
      const sessions = Array.from({ length: pages[at] ?? 0 }, () => ({}));
      const result = { type: 'sessions', sessions, next: at + 1 < pages.length ? BigInt(at + 1) : 0n };
      done(undefined, { result: result as unknown as QueryResult, revision: 1, raftTerm: 1 });
    }
    return () => {};
  };
  await warnOfSessionsWithoutUser({ backend: { query }, logger }, { principal: undefined, timeoutMs: 1_000 });
  return lines;
}

test('sessions without a user are counted page by page, up to a bound, and an error only ends that', async () => {
  expect(await logged([0])).toEqual([]);
  expect(await logged([3, 0, 4])).toEqual([{ sessions: 7, atLeast: false }]);
  expect(await logged(Array.from({ length: 20 }, () => 1_000))).toEqual([{ sessions: 10_000, atLeast: true }]);
  expect(await logged(new ServiceError('UNAVAILABLE', 'no range'))).toEqual([
    { error: expect.stringContaining('no range') },
  ]);
});
