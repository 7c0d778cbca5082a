import { assert, type Bytes, compareBytes } from '@remora/base';
import type { Command, Compare, KvOp, KvResult, PartOp, Txn, TxnResult } from '@remora/protocol';
import { comparedSpan, keysSpan } from '../routing/routes/request-keys.ts';

/** A command on plain keys, which may be in several ranges. */
export type KvCommand = Extract<Command, { type: 'kv' | 'txn' }>;

/** A list of operations that are executed together: the numbers of operations, and nested transactions. */
interface Branch {
  readonly number: number;
  readonly steps: readonly (number | Node)[];
}

interface Node {
  /** The numbers of its comparisons. */
  readonly compares: readonly number[];
  readonly success: Branch;
  readonly failure: Branch;
}

/**
 * A transaction in the form that ranges take: a list of comparisons, and a list of operations, each in a numbered
 * branch. The plan keeps the nesting, by which it finds the executed branches and puts the results together.
 */
export class TxnPlan {
  readonly compares: readonly Compare[];
  readonly ops: readonly PartOp[];
  /**
   * The routing key beside which the record lies: the first key that may be written. So all attempts at a request have
   * the same one, and at most one of them can be prepared there.
   */
  readonly primaryKey: Bytes;
  readonly #root: Node;
  readonly #oneOp: boolean;

  constructor(command: KvCommand) {
    const txn: Txn = command.type === 'txn' ? command.txn : { compare: [], success: [command.op], failure: [] };
    const flat = new Flattening();
    this.#root = flat.node(txn);
    this.#oneOp = command.type === 'kv';
    this.compares = flat.compares;
    this.ops = flat.ops;
    this.primaryKey = firstKey(flat);
  }

  /** Returns the executed branches, ascending. As in etcd, all comparisons are made before anything is changed. */
  branches(holds: readonly boolean[]): readonly number[] {
    const taken: number[] = [];
    const visit = ({ compares, success, failure }: Node): void => {
      const branch = compares.every((number) => holds[number] === true) ? success : failure;
      taken.push(branch.number);
      for (const step of branch.steps) if (typeof step !== 'number') visit(step);
    };
    visit(this.#root);
    return taken.sort((a, b) => a - b);
  }

  /** Returns the answer for the client; `resultOf` returns the results of the operations of these branches. */
  answer(branches: readonly number[], resultOf: (number: number) => KvResult): KvResult {
    const taken = new Set(branches);
    const visit = ({ success, failure }: Node): TxnResult => {
      const succeeded = taken.has(success.number);
      const { steps } = succeeded ? success : failure;
      const results = steps.map((step) => (typeof step === 'number' ? resultOf(step) : visit(step)));
      return { type: 'txn', succeeded, results };
    };
    const result = visit(this.#root);
    if (!this.#oneOp) return result;
    const [only] = result.results;
    assert(only !== undefined, 'a command of one operation has one result');
    return only;
  }
}

class Flattening {
  readonly compares: Compare[] = [];
  readonly ops: PartOp[] = [];
  #branches = 0;

  node({ compare, success, failure }: Txn): Node {
    const compares = compare.map((one) => this.compares.push(one) - 1);
    return { compares, success: this.#branch(success), failure: this.#branch(failure) };
  }

  #branch(ops: readonly KvOp[]): Branch {
    const number = this.#branches++;
    const steps = ops.map((op) => {
      if (op.type === 'txn') return this.node(op.txn);
      const place = this.ops.length;
      this.ops.push({ number: place, branch: number, op });
      return place;
    });
    return { number, steps };
  }
}

function firstKey({ compares, ops }: Pick<TxnPlan, 'compares' | 'ops'>): Bytes {
  const writes = ops.filter(({ op }) => op.type !== 'range').map(({ op }) => op);
  const read = [...compares.map(comparedSpan), ...ops.map(({ op }) => keysSpan(op))];
  const keys = (writes.length > 0 ? writes.map(keysSpan) : read).map(({ start }) => start);
  const first = keys.reduce<Bytes | undefined>(
    (lowest, key) => (lowest === undefined || compareBytes(key, lowest) < 0 ? key : lowest),
    undefined,
  );
  assert(first !== undefined, 'a command over several ranges has keys');
  return first;
}
