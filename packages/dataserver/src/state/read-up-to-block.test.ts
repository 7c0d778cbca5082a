/** What a command may read at a named revision, by the version of its entry (numbering.ts N6). */
import { assert, FIRST_VERSION, versionOf } from '@remora/base';
import type { CommandResult, PutOp, RangeOp, Txn, TxnPrepare } from '@remora/protocol';
import { describe, expect, test } from 'vitest';
import { put, range, type StateBed, show } from '../../test/support/state-bed.ts';
import { commitAt, decide, neighbours, prepare, prepared, resolve, txnResult } from '../../test/support/txn-bed.ts';

const SECOND = versionOf('0.2') ?? 0;
const BLOCK = { first: 20, count: 5 };

const readAt = (revision: number, key = 'a', end?: string): RangeOp => range(key, end, { revision });

/** The range whose last change, of the key a, was at revision 10. */
async function bedAt10(version: number): Promise<readonly [StateBed, StateBed]> {
  const beds = neighbours();
  const [left] = beds;
  left.block = { first: 10, count: 1 };
  await left.ok({ type: 'kv', op: put('a', 'ten') });
  left.block = undefined;
  for (const bed of beds) bed.version = version;
  return beds;
}

function txn(...success: readonly (PutOp | RangeOp)[]): { readonly type: 'txn'; readonly txn: Txn } {
  return { type: 'txn', txn: { compare: [], success, failure: [] } };
}

function shown(result: CommandResult): readonly string[] {
  return result.type === 'txn' ? result.results.map((one) => show(one)) : [result.type];
}

async function answerTo(bed: StateBed, command: TxnPrepare) {
  const answer = await prepared(bed, command);
  assert(answer.answer === 'prepared', `it is prepared, and not ${answer.answer}`);
  return answer;
}

describe('a transaction that writes, in one range', () => {
  test.each([
    { version: FIRST_VERSION, revision: 10, expect: 'a=ten@10/10/1' },
    { version: FIRST_VERSION, revision: 11, expect: 'FUTURE_REVISION' },
    { version: SECOND, revision: 10, expect: 'a=ten@10/10/1' },
    { version: SECOND, revision: 11, expect: 'a=ten@10/10/1' },
    { version: SECOND, revision: 19, expect: 'a=ten@10/10/1' },
    { version: SECOND, revision: 9, expect: '' },
    { version: SECOND, revision: 20, expect: 'FUTURE_REVISION' },
  ])('of version $version reads at $revision: $expect', async ({ version, revision, expect: expected }) => {
    for (const end of [undefined, 'c']) {
      const [bed] = await bedAt10(version);
      bed.block = BLOCK;
      const outcome = await bed.run(txn(put('b', 'new'), readAt(revision, 'a', end)));
      expect(outcome.ok ? shown(outcome.result)[1] : outcome.code).toBe(expected);
    }
  });

  test('sees what was there before its own entry, though the entry has changed the key meanwhile', async () => {
    const [bed] = await bedAt10(SECOND);
    bed.block = BLOCK;
    await bed.ok({ type: 'kv', op: put('a', 'twenty') });
    const result = await bed.ok(txn(put('b', 'new'), readAt(19)));
    expect(shown(result)).toEqual(['put', 'a=ten@10/10/1']);
  });

  test('without a block reads up to the last change of its range', async () => {
    const [bed] = await bedAt10(SECOND);
    const outcome = await bed.run({ type: 'kv', op: readAt(11) });
    expect(outcome).toMatchObject({ ok: false, code: 'FUTURE_REVISION' });
  });
});

describe('a transaction over two ranges', () => {
  const ops = [put('b', 'new'), readAt(15)];

  test('is refused at prepare in version 0.1, whatever its entry has', async () => {
    const [left] = await bedAt10(FIRST_VERSION);
    left.block = BLOCK;
    const { floor, failures } = await answerTo(left, prepare('t', 0, ops));
    expect([floor, failures.map(({ code }) => code)]).toEqual([10, ['FUTURE_REVISION']]);
  });

  test('reads below the block of its prepare from version 0.2 on, and commits above it', async () => {
    const [left, right] = await bedAt10(SECOND);
    for (const bed of [left, right]) bed.block = BLOCK;
    const { floor, failures } = await answerTo(left, prepare('t', 0, ops));
    expect([floor, failures]).toEqual([19, []]);
    const other = await answerTo(right, prepare('t', 1, [put('x', 'new'), range('x', 'z', { revision: 15 })]));
    expect(other.failures).toEqual([]);
    for (const bed of [left, right]) bed.block = undefined;
    const { results } = await txnResult(left, decide('t', commitAt(25)), 'txnDecide');
    expect(results?.map(({ result }) => show(result))).toEqual(['put', 'a=ten@10/10/1']);
    const there = await txnResult(right, resolve('t', commitAt(25), right), 'txnResolve');
    expect(there.results?.map(({ result }) => show(result))).toEqual(['put', '']);
  });

  test('is committed by an entry of an earlier version as well: a new leader may not know the newer one yet', async () => {
    const [left] = await bedAt10(SECOND);
    left.block = BLOCK;
    await prepared(left, prepare('t', 0, ops));
    left.block = undefined;
    left.version = FIRST_VERSION;
    const { results } = await txnResult(left, decide('t', commitAt(25)), 'txnDecide');
    expect(results?.map(({ result }) => show(result))).toEqual(['put', 'a=ten@10/10/1']);
  });
});
