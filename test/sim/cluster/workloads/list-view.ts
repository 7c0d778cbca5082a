/**
 * Lists of unique elements, each the value of a key, and their names in a history of transactions.
 *
 * Lists in such a history only grow (test/checkers/txn), and range deletes empty those in the store. So each range
 * delete also appends to one more list, `CLEARS`, and every transaction reads that one: a list that was read when n
 * clears were known is the history's list `key#n`. A list that survived a clear would have elements that were never
 * appended to `key#n`, and one that vanished without a clear would lack elements of its `key#n`.
 */

import { assert } from '@remora/base';
import type { KvPair, TxnAnswer, TxnCompare, TxnOperation } from 'remora';
import type { TxnOp } from '../../../checkers/index.ts';

/** The common prefix of the keys of all lists. */
export const LISTS_PREFIX = 't/';
/** First in the order of keys, so that every range read begins with it. */
export const CLEARS = 't/!';
export const LIST_KEYS: readonly string[] = ['t/0', 't/1', 't/2', 't/3', 't/4'];
/** All lists except `CLEARS`. */
export const LISTS_SPAN = { start: 't/0', end: 't0' };

export interface List {
  readonly elements: readonly string[];
  /** All 0 if the key does not exist. */
  readonly modRevision: number;
  readonly version: number;
}

/** The result of one request: `CLEARS` and some lists, all of one moment. */
export class ListView {
  /** Everything below `LISTS_PREFIX` at this revision; absent if only some keys were read. */
  readonly wholeAt: number | undefined;
  readonly #lists: ReadonlyMap<string, List>;

  constructor(keys: readonly string[], pairs: readonly KvPair[], wholeAt?: number) {
    const found = new Map(pairs.map((pair) => [pair.key.toString(), listOf(pair)]));
    this.#lists = new Map(keys.map((key) => [key, found.get(key) ?? ABSENT]));
    this.wholeAt = wholeAt;
  }

  /** The results of a transaction's `getOps` of `keys`. */
  static ofAnswers(keys: readonly string[], answers: readonly TxnAnswer[]): ListView {
    return new ListView(
      [CLEARS, ...keys],
      answers.flatMap((answer) => (answer.type === 'get' ? answer.kvs : [])),
    );
  }

  /** Without `CLEARS`. */
  get keys(): readonly string[] {
    return [...this.#lists.keys()].filter((key) => key !== CLEARS);
  }

  list(key: string): List {
    const list = this.#lists.get(key);
    assert(list !== undefined, `${key} was read`);
    return list;
  }

  /** The name of a list in the history. */
  nameOf(key: string): string {
    return key === CLEARS ? CLEARS : `${key}#${this.list(CLEARS).elements.length}`;
  }

  /** The operations that record the read of `CLEARS` and these lists. */
  reads(keys: readonly string[]): readonly TxnOp[] {
    return [CLEARS, ...keys].map((k) => ({ k: this.nameOf(k), op: 'get', out: this.list(k).elements }));
  }
}

const ABSENT: List = { elements: [], modRevision: 0, version: 0 };

function listOf({ value, modRevision, version }: KvPair): List {
  return { elements: elementsOf(value), modRevision, version };
}

export function elementsOf(value: Uint8Array): readonly string[] {
  return Buffer.from(value).toString().split(' ');
}

/** The value of a list with further elements. */
export function appended({ elements }: List, more: readonly string[]): string {
  return [...elements, ...more].join(' ');
}

export function getOps(keys: readonly string[]): readonly TxnOperation[] {
  return [CLEARS, ...keys].map((get) => ({ get }));
}

/** How a transaction ensures that nothing has changed since. `version` restarts after a clear, which is noticed. */
export type Guard = 'mod' | 'version' | 'value' | 'range';

/** The condition that `CLEARS` and the lists of these keys are as in `view`. */
export function unchanged(view: ListView, keys: readonly string[], guard: Guard): readonly TxnCompare[] {
  const byMod = (key: string): TxnCompare => ({
    key,
    target: 'modRevision',
    is: '=',
    than: view.list(key).modRevision,
  });
  if (guard === 'range' && view.wholeAt !== undefined) {
    // Deletions show in `CLEARS`; existing keys must be old.
    return [byMod(CLEARS), { key: { prefix: LISTS_PREFIX }, target: 'modRevision', is: '<', than: view.wholeAt + 1 }];
  }
  const same = (key: string): TxnCompare => {
    const list = view.list(key);
    if (guard === 'version') return { key, target: 'version', is: '=', than: list.version };
    if (guard === 'value' && list.version > 0) return { key, target: 'value', is: '=', than: appended(list, []) };
    return byMod(key);
  };
  return [byMod(CLEARS), ...keys.map(same)];
}
