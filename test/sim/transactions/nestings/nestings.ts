/**
 * Transactions of two or three operations in every nesting and every order: each operation is in the `success` or the
 * `failure` of the transaction, of a nested one, or of one nested in that.
 */
import type { Compare, KvOp, Txn } from '@remora/protocol';
import { del, put, range } from '../../../../packages/dataserver/test/support/state-bed.ts';

export const KEYS: readonly string[] = ['a', 'n', 'x'];
/** Each key's value before the transaction. */
export const VALUE_BEFORE = '0';
const DEPTH_MAX = 2;

/** The possible operations. */
const OPS: readonly KvOp[] = [
  ...KEYS.map((key) => put(key, '1', { prevKv: true })),
  ...KEYS.map((key) => del(key, undefined, true)),
  ...[['a', 'x'] as const, ['a', 'z'] as const, ['n', 'z'] as const].map(([key, end]) => del(key, end, true)),
  ...KEYS.map((key) => del(key, '', true)),
];

/** The positions of operations: `leaf` is the next of them. */
type Item = 'leaf' | Nesting;
type List = readonly Item[];
interface Nesting {
  readonly success: List;
  readonly failure: List;
}

const listsKnown = new Map<string, readonly List[]>();

/** All lists with this many operations, nested no deeper than `depth`. */
function lists(leaves: number, depth: number): readonly List[] {
  const name = `${leaves}/${depth}`;
  const known = listsKnown.get(name);
  if (known !== undefined) return known;
  const made: List[] = [];
  if (leaves === 0) made.push([]);
  for (let first = 1; first <= leaves; first++) {
    for (const rest of lists(leaves - first, depth)) {
      if (first === 1) made.push(['leaf', ...rest]);
      if (depth === 0) continue;
      for (const nesting of nestings(first, depth - 1)) made.push([nesting, ...rest]);
    }
  }
  listsKnown.set(name, made);
  return made;
}

const nestingsKnown = new Map<string, readonly Nesting[]>();

/** All transactions with this many operations, with nesting no deeper than `depth`. */
function nestings(leaves: number, depth = DEPTH_MAX): readonly Nesting[] {
  const name = `${leaves}/${depth}`;
  const known = nestingsKnown.get(name);
  if (known !== undefined) return known;
  const made: Nesting[] = [];
  for (let inThen = 0; inThen <= leaves; inThen++) {
    for (const success of lists(inThen, depth)) {
      for (const failure of lists(leaves - inThen, depth)) made.push({ success, failure });
    }
  }
  nestingsKnown.set(name, made);
  return made;
}

export function casesOf(leaves: number): number {
  return nestings(leaves).length * OPS.length ** leaves;
}

/**
 * One of the cases, by its number. The bits of a number decide which range a comparison is about and whether it holds.
 * Over all cases, every combination occurs.
 */
export function txnOf(leaves: number, number: number): Txn {
  const shapes = nestings(leaves);
  const shape = shapes[number % shapes.length];
  if (shape === undefined) throw new Error('there are shapes');
  let rest = Math.floor(number / shapes.length);
  const ops = Array.from({ length: leaves }, () => {
    const op = OPS[rest % OPS.length];
    rest = Math.floor(rest / OPS.length);
    if (op === undefined) throw new Error('there are operations');
    return op;
  });
  return new Filling(ops, mixed(number)).txn(shape, true);
}

/** Spreads a number over 32 bits, so that neighbouring numbers differ in all of them. */
function mixed(number: number): number {
  let hash = Math.imul(number ^ (number >>> 16), 0x45d9f3b);
  hash = Math.imul(hash ^ (hash >>> 16), 0x45d9f3b);
  return (hash ^ (hash >>> 16)) >>> 0;
}

class Filling {
  readonly #ops: readonly KvOp[];
  #bits: number;
  #next = 0;

  constructor(ops: readonly KvOp[], bits: number) {
    this.#ops = ops;
    this.#bits = bits;
  }

  /**
   * Both lists of the outermost transaction may end with a read of all keys, which sees the effects of the operations
   * before it.
   */
  txn({ success, failure }: Nesting, outermost = false): Txn {
    const compare = this.#compare();
    const all = outermost && this.#take(1) === 1 ? [range('a', 'zz')] : [];
    return { compare, success: [...this.#list(success), ...all], failure: [...this.#list(failure), ...all] };
  }

  #list(items: List): readonly KvOp[] {
    return items.map((item) => {
      if (item !== 'leaf') return { type: 'txn', txn: this.txn(item) };
      const op = this.#ops[this.#next++];
      if (op === undefined) throw new Error('there is an operation for each leaf');
      return op;
    });
  }

  #take(count: number): number {
    const bits = this.#bits & ((1 << count) - 1);
    this.#bits >>>= count;
    return bits;
  }

  /** No comparison, or one that holds, or one that does not hold. */
  #compare(): readonly Compare[] {
    const bits = this.#take(3);
    const key = KEYS[bits >> 1];
    if (key === undefined) return [];
    const value = Buffer.from((bits & 1) === 0 ? VALUE_BEFORE : 'another');
    return [{ key: Buffer.from(key), result: 'equal', target: { of: 'value', value } }];
  }
}
