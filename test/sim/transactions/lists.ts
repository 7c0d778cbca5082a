/** Transactions that append to lists and read them: what one asks of the ranges, and what its answer says. */
import type { Compare, KvResult, PartOp, PartResult, Txn } from '@remora/protocol';
import { put, range } from '../../../packages/dataserver/src/state/test-bed.ts';
import type { TxnOp } from '../../checkers/index.ts';

/** A list as it was read before, which is compared; and whether it is to grow, or else is read again. */
export interface ListAccess {
  readonly key: string;
  readonly before: readonly string[];
  readonly element?: string;
  readonly again?: boolean;
}

/** Then: appends and reads, if no list has changed. Else: reads. The number says which list, and which branch. */
export function opsOf(accesses: readonly ListAccess[]): readonly { readonly key: string; readonly op: PartOp }[] {
  const ops: { readonly key: string; readonly op: PartOp }[] = [];
  for (const [i, { key, before, element, again }] of accesses.entries()) {
    const put0 = element === undefined ? undefined : put(key, [...before, element].join(' '));
    if (put0 !== undefined) ops.push({ key, op: { number: i, branch: 0, op: put0 } });
    else if (again) ops.push({ key, op: { number: i, branch: 0, op: range(key) } });
    if (again) ops.push({ key, op: { number: accesses.length + i, branch: 1, op: range(key) } });
  }
  return ops;
}

export function comparesOf(accesses: readonly ListAccess[]) {
  return accesses.map(({ key, before }) => ({ key, compare: compareOf(key, before) }));
}

function compareOf(key: string, before: readonly string[]): Compare {
  const of = Buffer.from(key);
  return before.length === 0
    ? { key: of, result: 'equal', target: { of: 'version', value: 0 } }
    : { key: of, result: 'equal', target: { of: 'value', value: Buffer.from(before.join(' ')) } };
}

/** The same for one range. */
export function txnOf(accesses: readonly ListAccess[]): Txn {
  const ops = opsOf(accesses).map(({ op }) => op);
  const branch = (number: number) => ops.filter((op) => op.branch === number).map(({ op }) => op);
  return { compare: comparesOf(accesses).map(({ compare }) => compare), success: branch(0), failure: branch(1) };
}

/** What a commit did: all that is known of what it read. */
export function performed(
  accesses: readonly ListAccess[],
  held: boolean,
  results: readonly PartResult[] | undefined,
): readonly TxnOp[] {
  if (held) {
    const reads = accesses.map(({ key, before }): TxnOp => ({ k: key, op: 'get', out: before }));
    const again = readsIn(accesses, results, 0).filter(({ access }) => access.element === undefined);
    const appends = accesses.flatMap(({ key, element }): TxnOp[] =>
      element === undefined ? [] : [{ k: key, op: 'append', v: element }],
    );
    return [...reads, ...again.map(({ op }) => op), ...appends];
  }
  return readsIn(accesses, results, accesses.length).map(({ op }) => op);
}

function readsIn(accesses: readonly ListAccess[], results: readonly PartResult[] | undefined, from: number) {
  return accesses.flatMap((access, i) => {
    const found = results?.find(({ number }) => number === from + i);
    if (found?.result.type !== 'range') return [];
    const op: TxnOp = { k: access.key, op: 'get', out: listIn(found.result) };
    return [{ access, op }];
  });
}

/** The results of one range, numbered as those of several are. */
export function numbered(accesses: readonly ListAccess[], held: boolean, results: readonly KvResult[]) {
  const executed = opsOf(accesses).filter(({ op }) => op.branch === (held ? 0 : 1));
  return executed.flatMap(({ key, op }, i): PartResult[] => {
    const result = results[i];
    return result === undefined || result.type === 'txn' ? [] : [{ number: op.number, key: Buffer.from(key), result }];
  });
}

export function listIn(result: Extract<KvResult, { type: 'range' }>): readonly string[] {
  const [kv] = result.kvs;
  return kv === undefined ? [] : Buffer.from(kv.value).toString().split(' ');
}
