/**
 * A bank whose accounts are changed by STMs only (`kv.stm`), so that a checker of transactions can judge them.
 *
 * An account is one key: its balance, and the names of all changes that made it. A key that does not exist is an
 * account without changes. For the checker an account is a list, and each change appends its name
 * (`checkers/txn/history.ts`).
 *
 * BK1. A balance is what the bank gives to each account, and the amounts of the changes together.
 * BK2. Transfers keep the sum of all accounts, in every state that a run sees.
 */
import type { Random } from '@remora/base';
import type { KvPair, Stm } from 'remora';
import type { TxnOp } from '../checkers/index.ts';

/** The balance of an account without changes. */
const GIVEN = 100;
const AMOUNT_MAX = 9;

export interface Bank {
  /** All accounts, and nothing else, have this prefix. */
  readonly prefix: string;
  readonly accounts: readonly string[];
}

export function bankOf(prefix: string, count: number): Bank {
  return { prefix, accounts: Array.from({ length: count }, (_, i) => `${prefix}${i}`) };
}

/** What one STM does. It reads first, and then changes accounts that it has read. */
export interface BankWork {
  readonly bank: Bank;
  /** The accounts that are read one after the other; undefined: all of them, as a range. */
  readonly reads: readonly string[] | undefined;
  readonly changes: readonly { readonly account: string; readonly name: string; readonly amount: number }[];
}

/** `name`: unique, and without spaces. */
export function drawWork({ random, bank, name }: { random: Random; bank: Bank; name: string }): BankWork {
  const order = bank.accounts.map((account) => ({ account, at: random.int(1_000) })).sort((x, y) => x.at - y.at);
  const [from = '', to = '', ...others] = order.map(({ account }) => account);
  const change = (account: string, amount: number) => ({ account, name: `${name}=${amount}`, amount });
  const amount = 1 + random.int(AMOUNT_MAX);
  switch (random.int(8)) {
    case 0: // Looks at all accounts, one after the other.
      return { bank, reads: bank.accounts, changes: [] };
    case 1:
      return { bank, reads: undefined, changes: [] };
    case 2: // Adds to one account depending on all, also on those that do not exist yet.
      return { bank, reads: undefined, changes: [change(from, 0)] };
    case 3:
    case 4: // Changes the first of several that it has read: two of these at once would be a write skew.
      return { bank, reads: [from, to, ...others.slice(0, 1)], changes: [change(from, 0)] };
    default:
      return { bank, reads: [from, to], changes: [change(from, -amount), change(to, amount)] };
  }
}

/** What it does as operations of a history, in their order; what its reads return is left open. */
export function opsOf({ bank, reads, changes }: BankWork): readonly TxnOp[] {
  return [
    ...(reads ?? bank.accounts).map((k): TxnOp => ({ k, op: 'get' })),
    ...changes.map(({ account, name }): TxnOp => ({ k: account, op: 'append', v: name })),
  ];
}

/** An account as it was read. */
interface Account {
  readonly balance: number;
  readonly changes: readonly string[];
}

/** What a run has read, in the order of the `get`s of its operations. */
export interface Statement {
  readonly lists: readonly (readonly string[])[];
  /** BK1, BK2: what is wrong with it; empty if nothing is. */
  readonly wrong: string;
}

export async function readAll(t: Stm, { bank, reads }: BankWork): Promise<readonly (KvPair | undefined)[]> {
  if (reads === undefined) return inOrder(bank, await t.range({ prefix: bank.prefix }));
  const pairs: (KvPair | undefined)[] = [];
  for (const account of reads) pairs.push(await t.get(account));
  return pairs;
}

/** The pairs of all accounts; undefined for those without changes. */
export function inOrder({ accounts }: Bank, pairs: readonly KvPair[]): readonly (KvPair | undefined)[] {
  const found = new Map(pairs.map((pair) => [pair.key.toString(), pair]));
  return accounts.map((account) => found.get(account));
}

/** The writes of a run, after it has read `pairs`. */
export function writeAll(t: Stm, { bank, reads, changes }: BankWork, pairs: readonly (KvPair | undefined)[]): void {
  const keys = reads ?? bank.accounts;
  for (const { account, name, amount } of changes) {
    const before = accountOf(pairs[keys.indexOf(account)]);
    t.put(account, [before.balance + amount, ...before.changes, name].join(' '));
  }
}

/** `pairs`: of all accounts of the bank, or of some. */
export function statementOf({ accounts }: Bank, pairs: readonly (KvPair | undefined)[]): Statement {
  const read = pairs.map(accountOf);
  const lists = read.map(({ changes }) => changes);
  const odd = read.find(({ balance, changes }) => balance !== GIVEN + sum(changes.map(amountOf)));
  if (odd !== undefined) return { lists, wrong: `a balance of ${odd.balance} after ${odd.changes.join(' ')}` };
  const all = sum(read.map(({ balance }) => balance));
  const isWrong = read.length === accounts.length && all !== accounts.length * GIVEN;
  return { lists, wrong: isWrong ? `${accounts.length} accounts have ${all} together: ${shown(read)}` : '' };
}

function shown(accounts: readonly Account[]): string {
  return accounts.map(({ balance, changes }) => `${balance} (${changes.slice(-3).join(' ')})`).join(', ');
}

function accountOf(pair: KvPair | undefined): Account {
  if (pair === undefined) return { balance: GIVEN, changes: [] };
  const [balance, ...changes] = pair.text().split(' ');
  return { balance: Number(balance), changes };
}

function amountOf(name: string): number {
  return Number(name.split('=')[1]);
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, number) => total + number, 0);
}
