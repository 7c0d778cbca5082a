/**
 * How transactions over lists are nested, and what else they write. Branches that must not be taken would destroy
 * lists, deletes overlap, and some transactions could change a key twice.
 */
import type { Random } from '@remora/base';
import type { Compare, DeleteResult, KvOp, KvResult, PutOp } from '@remora/protocol';
import { del, put, range } from '../../../packages/dataserver/test/support/state-bed.ts';

/** The list's value after the transaction, and a comparison that holds if the list was not changed before. */
export interface Append {
  readonly put: PutOp;
  readonly unchanged: Compare;
  /** A comparison that fails whenever the other one holds. */
  readonly changed: Compare;
}

/** Operations, and a check of their results. */
export interface Shaped {
  readonly ops: readonly KvOp[];
  readonly faults: (results: readonly KvResult[]) => readonly string[];
}

/**
 * Keys beside the lists, at both ends of the plain keys. A list of operations may either put them or delete them, not
 * both.
 */
const SCRATCH: readonly string[] = ['i3', 'l3'];

/**
 * Executes an operation instead of alternatives that exclude it: directly, in a `success`, in a `failure`, or two
 * levels deep.
 */
function nested(random: Random, { put: op, unchanged, changed }: Append): KvOp {
  const destroyed = del(op.key.toString());
  const inThen = (ops: readonly KvOp[]): KvOp => txn([unchanged], ops, [destroyed]);
  const inElse = (ops: readonly KvOp[]): KvOp => txn([unchanged, changed], [destroyed], ops);
  switch (random.int(5)) {
    case 0:
      return op;
    case 1:
      return inThen([op]);
    case 2:
      return inElse([op]);
    case 3:
      return inThen([inElse([op])]);
    default:
      return inElse([inThen([op])]);
  }
}

function txn(compare: readonly Compare[], success: readonly KvOp[], failure: readonly KvOp[] = []): KvOp {
  return { type: 'txn', txn: { compare, success, failure } };
}

/** TL3 of txn-load.ts. The sender compares all lists with their previous state. */
export function appending(random: Random, appends: readonly Append[]): Shaped {
  const ops = appends.map((append) => nested(random, append));
  const more = random.int(3) === 0 ? overlappingDeletes() : { ops: scratchPuts(random), faults: () => [] };
  return {
    ops: [...ops, ...more.ops],
    faults: (results) => [
      ...ops.flatMap((op, i) => wronglyTaken(op, results[i])),
      ...more.faults(results.slice(ops.length)),
    ],
  };
}

function scratchPuts(random: Random): readonly KvOp[] {
  return SCRATCH.filter(() => random.int(3) === 0).map((key) => txn([], [put(key, 'scratch')]));
}

/** Two deletes for each key: the second one does not find the key that the first one deleted. */
function overlappingDeletes(): Shaped {
  const ops = SCRATCH.flatMap((key) => {
    const start = key.slice(0, 1);
    return [txn([], [del(`${start}2`, `${start}4`)]), del(key, `${start}5`)];
  });
  return {
    ops,
    faults: (results) =>
      SCRATCH.flatMap((key, i) => {
        const [first] = deletesIn(results[2 * i]);
        const [second] = deletesIn(results[2 * i + 1]);
        const fine = first !== undefined && first.deleted <= 1 && second?.deleted === 0;
        return fine
          ? []
          : [`TL3: ${key} was deleted ${first?.deleted} and ${second?.deleted} times in one transaction`];
      }),
  };
}

function deletesIn(result: KvResult | undefined): readonly DeleteResult[] {
  if (result?.type === 'txn') return result.results.flatMap(deletesIn);
  return result?.type === 'delete' ? [result] : [];
}

/** Operations that would destroy a list are in the branch that is not taken. */
function wronglyTaken(op: KvOp, result: KvResult | undefined): readonly string[] {
  const right =
    result !== undefined && (op.type === 'txn') === (result.type === 'txn') && deletesIn(result).length === 0;
  return right ? [] : [`TL3: ${op.type} was answered with ${result?.type}, or its other branch was executed`];
}

/** Reads of lists, sometimes as the only branch of a nested transaction that is ever taken. */
export function reading(random: Random, keys: readonly string[]): readonly KvOp[] {
  const reads = keys.map((key) => range(key));
  if (random.int(2) === 0) return reads;
  const destroying = keys.map((key) => del(key));
  return [txn([], reads, destroying)];
}

/** The results of `reading`. */
export function readIn(results: readonly KvResult[]): readonly KvResult[] {
  const [first] = results;
  return first?.type === 'txn' ? first.results : results;
}

/** TL2: operations that could change a list twice, in orders that etcd also accepts and in others. */
export function changingTwice(random: Random, { key, value }: PutOp): readonly KvOp[] {
  const first = txn([], [put(key.toString(), value.toString())]);
  const list = key.toString();
  const all = [del(list), del('i', 'm'), del(list, '')][random.int(3)] ?? del(list);
  const second = [all, txn([], [all]), txn([], [], [txn([], [all])])][random.int(3)] ?? all;
  return random.int(2) === 0 ? [first, second] : [second, first];
}
