/** Transactions that append to lists and read them: their operations, and the interpretation of their answers. */
import type { Compare, DeleteOp, KvOp, KvResult, PartOp, PartResult, Txn } from '@remora/protocol';
import { del, put, range } from '../../../packages/dataserver/test/support/state-bed.ts';
import type { TxnOp } from '../../checkers/index.ts';

/** A list with its previously read value, which is compared. The transaction either appends to it or reads it again. */
export interface ListAccess {
  readonly key: string;
  readonly before: readonly string[];
  readonly element?: string;
  readonly again?: boolean;
  /**
   * The append is in a nested transaction whose other branch would delete the list, and it stands beside overlapping
   * deletes.
   */
  readonly nested?: boolean;
}

/**
 * `then` appends and reads if no list has changed. `else` reads. The number identifies the list and the branch.
 * Branches 2 and 3 belong to the transaction nested in the first one: 2 is executed with it, 3 never is.
 */
export function opsOf(accesses: readonly ListAccess[]): readonly { readonly key: string; readonly op: PartOp }[] {
  const ops: { readonly key: string; readonly op: PartOp }[] = [];
  const add = (key: string, branch: number, op: PartOp['op']): void => {
    ops.push({ key, op: { number: 2 * accesses.length + ops.length, branch, op } });
  };
  for (const [i, { key, before, element, again, nested }] of accesses.entries()) {
    const put0 = element === undefined ? undefined : put(key, [...before, element].join(' '));
    if (put0 !== undefined && nested) {
      add(key, 2, put0);
      add(key, 3, del(key) as DeleteOp);
      add(key, 0, del(`${key}!`, `${key}~`) as DeleteOp);
      add(key, 0, del(`${key}"`) as DeleteOp);
    } else if (put0 !== undefined) ops.push({ key, op: { number: i, branch: 0, op: put0 } });
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
  const compare = comparesOf(accesses).map((one) => one.compare);
  return {
    compare,
    success: executed(accesses, true).map(inItsPlace),
    failure: executed(accesses, false).map(inItsPlace),
  };
}

function executed(accesses: readonly ListAccess[], held: boolean) {
  return opsOf(accesses).filter(({ op: { branch } }) => (held ? branch === 0 || branch === 2 : branch === 1));
}

function inItsPlace({ key, op: { branch, op } }: { readonly key: string; readonly op: PartOp }): KvOp {
  return branch === 2 ? { type: 'txn', txn: { compare: [], success: [op], failure: [del(key)] } } : op;
}

/** What a commit did: everything that is known about its reads. */
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

/** The results of one range, numbered like those of several. */
export function numbered(accesses: readonly ListAccess[], held: boolean, results: readonly KvResult[]) {
  return executed(accesses, held).flatMap(({ key, op }, i): PartResult[] => {
    const told = results[i];
    const result = told?.type === 'txn' ? told.results[0] : told;
    return result === undefined || result.type === 'txn' ? [] : [{ number: op.number, key: Buffer.from(key), result }];
  });
}

export function listIn(result: Extract<KvResult, { type: 'range' }>): readonly string[] {
  const [kv] = result.kvs;
  return kv === undefined ? [] : Buffer.from(kv.value).toString().split(' ');
}
