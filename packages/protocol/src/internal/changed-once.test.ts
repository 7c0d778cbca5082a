import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { changedTwice } from './changed-once.ts';
import { rangeOp } from './kv-shape.ts';
import type { DeleteOp, KvOp, PutOp, Txn } from './kv-types.ts';

const bytes = (text: string): Buffer => Buffer.from(text, 'latin1');

function put(key: string): PutOp {
  const flags = { prevKv: false, ignoreValue: false, ignoreLease: false };
  return { type: 'put', key: bytes(key), value: bytes('v'), lease: 0n, ...flags };
}

/** `end` undefined: one key; empty: from it on. */
function del(key: string, end?: string): DeleteOp {
  return { type: 'delete', key: bytes(key), prevKv: false, ...(end === undefined ? {} : { end: bytes(end) }) };
}

function txn(success: readonly KvOp[], failure: readonly KvOp[] = []): KvOp {
  return { type: 'txn', txn: { compare: [], success, failure } };
}

function codeOf(success: readonly KvOp[], failure: readonly KvOp[] = []): string {
  return changedTwice({ success, failure })?.code ?? 'accepted';
}

interface Row {
  readonly name: string;
  readonly ops: readonly KvOp[];
}

const REFUSED: readonly Row[] = [
  { name: 'two puts of a key', ops: [put('a'), put('a')] },
  { name: 'a put and a delete of its key', ops: [put('a'), del('a')] },
  { name: 'a delete of a key, and a put of it', ops: [del('a'), put('a')] },
  { name: 'a put inside a deleted range', ops: [del('a', 'c'), put('b')] },
  { name: 'a put of the first key of a deleted range', ops: [put('a'), del('a', 'c')] },
  { name: 'a put behind the key from which everything is deleted', ops: [del('b', ''), put('z')] },
  { name: 'the same, in the other order', ops: [put('z'), del('b', '')] },
  { name: 'a put, and one in a nested failure', ops: [put('a'), txn([], [put('a')])] },
  { name: 'puts in two nested transactions', ops: [txn([put('a')]), txn([], [put('a')])] },
  { name: 'a put beside a nested delete', ops: [put('b'), txn([del('a', 'c')])] },
  { name: 'a nested delete, and a nested put behind it', ops: [txn([del('a', 'z')]), txn([put('x')])] },
  {
    name: 'a nested put, and a nested delete behind it, which etcd accepts',
    ops: [txn([put('x')]), txn([del('a', 'z')])],
  },
  { name: 'the same, with the delete two deep', ops: [txn([put('x')]), txn([txn([del('x')])])] },
  { name: 'the same, with the put two deep', ops: [txn([txn([], [put('x')])]), txn([del('x', '')])] },
  { name: 'a nested put, and the failure of another', ops: [txn([put('x')]), txn([], [del('x')])] },
  { name: 'a put two deep, beside a delete one deep', ops: [txn([txn([put('x')]), del('x')])] },
  {
    name: 'a put that only a delete covers which ends later',
    ops: [txn([del('a', 'z')]), txn([del('b', 'c'), put('x')])],
  },
];

const ACCEPTED: readonly Row[] = [
  { name: 'nothing', ops: [] },
  { name: 'different keys', ops: [put('a'), put('b'), del('c')] },
  { name: 'a put at the end of a deleted range', ops: [del('a', 'c'), put('c')] },
  { name: 'a put before the key from which everything is deleted', ops: [del('b', ''), put('a')] },
  { name: 'deletes that overlap', ops: [del('a', 'c'), del('b', 'd'), txn([del('a', '')])] },
  { name: 'a delete of an empty range', ops: [del('c', 'a'), del('b', 'b'), put('b')] },
  { name: 'reads of what is changed', ops: [rangeOp({ key: bytes('a') }), put('a'), rangeOp({ key: bytes('a') })] },
  { name: 'puts in branches that exclude each other', ops: [txn([put('a')], [put('a')])] },
  { name: 'a put and a delete in such branches', ops: [txn([put('a')], [del('a', 'z')])] },
  { name: 'the same, two deep', ops: [txn([txn([put('a')])], [txn([], [del('a')])])] },
];

describe('a transaction that could change a key twice is refused', () => {
  test.each(REFUSED)('$name', ({ ops }) => {
    expect(codeOf(ops)).toBe('DUPLICATE_KEY');
    expect(codeOf([], ops)).toBe('DUPLICATE_KEY');
    expect(codeOf([put('q'), txn([], [txn(ops)])])).toBe('DUPLICATE_KEY');
    expect(codeOf([...ops].reverse())).toBe('DUPLICATE_KEY');
  });
});

describe('other transactions are accepted', () => {
  test.each(ACCEPTED)('$name', ({ ops }) => {
    expect(codeOf(ops)).toBe('accepted');
    expect(codeOf(ops, ops)).toBe('accepted');
  });
});

test('the refusal names the key, what changes it, and what to do', () => {
  const messageOf = (...ops: KvOp[]): string => changedTwice({ success: ops, failure: [] })?.message ?? '';
  expect(messageOf(put('x'), del('a', 'z'))).toBe(
    'the transaction can change the key "x" twice, by a put and by the delete of keys from "a" to "z": ' +
      'change each key once, or put the operations into branches that exclude each other',
  );
  expect(messageOf(put('x'), txn([put('x')]))).toContain('by a put and by another put of it');
  expect(messageOf(put('x'), del('x', ''))).toContain('the delete of all keys from "x" on');
  expect(messageOf(put('\x1b"é'), del('\x1b"é'))).toContain('the key "\\x1b\\x22\\xe9" twice');
  expect(messageOf(put('k'.repeat(1_000)), del('a', 'z'))).toContain(`"${'k'.repeat(60)}"…`);
});

/** An operation, and where it is: the place in a list, then the branch of what stands there, and so on. */
interface Placed {
  readonly op: PutOp | DeleteOp;
  readonly path: readonly (number | 'success' | 'failure')[];
}

function placed(ops: readonly KvOp[], path: Placed['path']): readonly Placed[] {
  return ops.flatMap((op, i) => {
    if (op.type === 'range') return [];
    if (op.type !== 'txn') return [{ op, path: [...path, i] }];
    const { success, failure } = op.txn;
    return [...placed(success, [...path, i, 'success']), ...placed(failure, [...path, i, 'failure'])];
  });
}

/** CO1: paths part at a place in a list, not at the branches of one transaction. */
function canMeet(a: Placed, b: Placed): boolean {
  const parting = a.path.findIndex((step, i) => step !== b.path[i]);
  return typeof a.path[parting] === 'number';
}

function keysOf(op: PutOp | DeleteOp): readonly string[] {
  const key = op.key.toString();
  if (op.type === 'put' || op.end === undefined) return [key];
  const end = op.end.toString();
  return [...'abcd'].filter((one) => one >= key && (end === '' || one < end));
}

function isClash(a: Placed, b: Placed): boolean {
  const puts = a.op.type === 'put' || b.op.type === 'put';
  return puts && canMeet(a, b) && keysOf(a.op).some((key) => keysOf(b.op).includes(key));
}

const key = fc.constantFrom(...'abcd');
const { op } = fc.letrec<{ op: KvOp; list: readonly KvOp[] }>((tie) => ({
  op: fc.oneof(
    { depthSize: 'small', withCrossShrink: true },
    key.map(put),
    key.map((one) => del(one)),
    fc.tuple(key, fc.constantFrom('', ...'abcd')).map(([from, to]) => del(from, to)),
    fc.tuple(tie('list'), tie('list')).map(([success, failure]) => txn(success, failure)),
  ),
  list: fc.array(tie('op'), { maxLength: 4 }),
}));

test('it is refused exactly when two of its operations that can meet change one key, whatever the order and the depth', () => {
  const counts = { refused: 0, accepted: 0 };
  fc.assert(
    fc.property(fc.array(op, { maxLength: 4 }), fc.array(op, { maxLength: 2 }), (success, failure) => {
      const all = [placed(success, ['success']), placed(failure, ['failure'])];
      const clash = all.some((list) => list.some((a, i) => list.slice(i + 1).some((b) => isClash(a, b))));
      counts[clash ? 'refused' : 'accepted']++;
      expect(codeOf(success, failure)).toBe(clash ? 'DUPLICATE_KEY' : 'accepted');
    }),
    { numRuns: 3_000, seed: 7 },
  );
  expect(Math.min(counts.refused, counts.accepted)).toBeGreaterThan(300);
});

test('as many operations as a request has room for are compared without comparing each with each', () => {
  const many = (depth: number, name: string): Txn['success'] =>
    Array.from({ length: 16 }, (_, i) => {
      const inner = `${name}${String.fromCharCode(97 + i)}`;
      if (depth > 0) return txn(many(depth - 1, inner), [del(`${inner}!`, `${inner}"`)]);
      return i % 2 === 0 ? put(inner) : del(`${inner}a`, `${inner}b`);
    });
  const success = many(3, 'k');
  expect(codeOf(success)).toBe('accepted');
  expect(codeOf([...success, del('kaaaa')])).toBe('DUPLICATE_KEY');
});
