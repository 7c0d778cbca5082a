import { type Random, SeededRandom } from '@remora/base';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AnomalyType, checkTransactions, type TxnOp, type TxnRecord } from '../index.ts';
import { findCycles } from './cycles.ts';
import { Graph, WW } from './graph.ts';

let clients = 0;
const a = (k: string, v: string): TxnOp => ({ k, op: 'append', v });
const r = (k: string, out: string): TxnOp => ({ k, op: 'get', out: out === '' ? [] : out.split(' ') });

/** Committed between two moments (by a client of its own), unknown when the second is null. */
function txn([t0, t1]: readonly [number, number | null], ...ops: readonly TxnOp[]): TxnRecord {
  return { c: `c${clients++}`, op: 'txn', ops, ok: t1 !== null, t0, t1 };
}
const aborted = (record: TxnRecord): TxnRecord => ({ ...record, ok: false });
const by = (c: string, record: TxnRecord): TxnRecord => ({ ...record, c });

interface Row {
  readonly name: string;
  readonly history: readonly TxnRecord[];
  readonly expect: readonly AnomalyType[];
}

const good: readonly Row[] = [
  { name: 'nothing', history: [], expect: [] },
  {
    name: 'one after another',
    history: [txn([0, 1], a('x', '1')), txn([2, 3], r('x', '1'), a('x', '2')), txn([4, 5], r('x', '1 2'))],
    expect: [],
  },
  {
    name: 'a transaction sees its own appends',
    history: [txn([0, 1], a('x', '1'), r('x', '1'), a('x', '2'), r('x', '1 2'))],
    expect: [],
  },
  {
    name: 'a read beside an append sees it or not',
    history: [txn([0, 9], a('x', '1')), txn([1, 2], r('x', '')), txn([3, 4], r('x', '1'))],
    expect: [],
  },
  {
    name: 'an append of unknown outcome that came late',
    history: [
      txn([0, null], a('x', '1')),
      txn([1, 2], a('x', '2')),
      txn([3, 4], r('x', '2')),
      txn([5, 6], r('x', '2 1')),
    ],
    expect: [],
  },
  {
    name: 'an append of unknown outcome that never came',
    history: [txn([0, null], a('x', '1')), txn([1, 2], r('x', '')), txn([3, 4], r('x', ''))],
    expect: [],
  },
  {
    name: 'an aborted transaction that was told anything',
    history: [aborted(txn([0, 1], r('x', 'nonsense'), a('x', '1'))), txn([2, 3], r('x', ''))],
    expect: [],
  },
  {
    name: 'what touches in time is concurrent',
    history: [txn([0, 1], a('x', '1')), txn([1, 2], r('x', ''))],
    expect: [],
  },
];

/** From Adya's thesis, the Elle paper and Jepsen's reports, as list-append. */
const bad: readonly Row[] = [
  {
    name: 'dirty writes: the appends of two transactions come in two orders',
    history: [
      txn([0, 9], a('x', '1'), a('y', '1')),
      txn([0, 9], a('x', '2'), a('y', '2')),
      txn([10, 11], r('x', '1 2'), r('y', '2 1')),
    ],
    expect: ['G0'],
  },
  {
    name: 'a read of what was aborted',
    history: [aborted(txn([0, 9], a('x', '1'))), txn([1, 2], r('x', '1'))],
    expect: ['G1a'],
  },
  {
    name: 'a read in the middle of a transaction',
    history: [txn([0, 9], a('x', '1'), a('x', '2')), txn([1, 2], r('x', '1')), txn([10, 11], r('x', '1 2'))],
    expect: ['G1b', 'G-single'],
  },
  {
    name: 'two transactions that saw each other',
    history: [txn([0, 9], a('x', '1'), r('y', '1')), txn([0, 9], a('y', '1'), r('x', '1'))],
    expect: ['G1c'],
  },
  {
    name: 'read skew: half of a transaction seen',
    history: [txn([0, 9], a('x', '1'), a('y', '1')), txn([0, 9], r('x', '1'), r('y', ''))],
    expect: ['G-single'],
  },
  {
    name: 'half of a transaction of unknown outcome seen',
    history: [txn([0, null], a('x', '1'), a('y', '1')), txn([1, 9], r('x', '1'), r('y', ''))],
    expect: ['G-single'],
  },
  {
    name: 'lost update: both read the same list and appended',
    history: [txn([0, 9], r('x', ''), a('x', '1')), txn([0, 9], r('x', ''), a('x', '2')), txn([10, 11], r('x', '1 2'))],
    expect: ['G-single'],
  },
  {
    name: 'a lost update of which nobody read anything',
    history: [txn([0, 9], r('x', ''), a('x', '1')), txn([0, 9], r('x', ''), a('x', '2'))],
    expect: ['G2'],
  },
  {
    name: 'write skew',
    history: [
      txn([0, 9], r('x', ''), a('y', '1')),
      txn([0, 9], r('y', ''), a('x', '1')),
      txn([10, 11], r('x', '1'), r('y', '1')),
    ],
    expect: ['G2'],
  },
  {
    name: 'a long fork: two readers see two appends in two orders',
    history: [
      txn([0, 9], a('x', '1')),
      txn([0, 9], a('y', '1')),
      txn([0, 9], r('x', '1'), r('y', '')),
      txn([0, 9], r('x', ''), r('y', '1')),
    ],
    expect: ['G2'],
  },
  {
    name: 'a transaction that contradicts itself',
    history: [txn([0, 1], a('x', '1'), r('x', ''))],
    expect: ['internal'],
  },
  {
    name: 'a read that is not repeatable',
    history: [txn([0, 9], a('x', '1')), txn([0, 9], r('x', ''), r('x', '1'))],
    expect: ['internal'],
  },
  {
    name: 'a transaction that reads what it appends later',
    history: [txn([0, 1], r('x', '1'), a('x', '1'))],
    expect: ['internal'],
  },
  {
    name: 'appends of one transaction turned round',
    history: [txn([0, 1], a('x', '1'), a('x', '2')), txn([2, 3], r('x', '2 1'))],
    expect: ['internal', 'G1b'],
  },
  {
    name: 'appends of one transaction in another order',
    history: [txn([0, 1], a('x', '1'), a('x', '2'), a('x', '3')), txn([2, 3], r('x', '1 3 2'))],
    expect: ['internal', 'G1b'],
  },
  {
    name: 'a stale read after two that ended one after the other',
    history: [
      txn([0, 5], a('x', '1')),
      txn([0, 6], a('y', '1')),
      txn([7, 8], r('x', '')),
      txn([9, 10], r('x', '1'), r('y', '1')),
    ],
    expect: ['G-single-realtime'],
  },
  {
    name: 'a shorter cycle of a less grave kind does not hide the graver one',
    history: [
      txn([0, 9], r('x', ''), r('w', '1'), a('y', '1')),
      txn([0, 9], r('y', ''), a('x', '1'), a('z', '1')),
      txn([0, 9], r('z', '1'), a('w', '1')),
    ],
    expect: ['G-single', 'G2'],
  },
  {
    name: 'an append applied twice',
    history: [txn([0, 1], a('x', '1')), txn([2, 3], r('x', '1 1'))],
    expect: ['duplicate-elements'],
  },
  { name: 'an element from nowhere', history: [txn([0, 1], r('x', '1'))], expect: ['garbage-read'] },
  {
    name: 'two orders of one list',
    history: [
      txn([0, 9], a('x', '1')),
      txn([0, 9], a('x', '2')),
      txn([10, 11], r('x', '1 2')),
      txn([10, 11], r('x', '2 1')),
    ],
    expect: ['incompatible-order'],
  },
  {
    name: 'a lost append',
    history: [txn([0, 1], a('x', '1')), txn([2, 3], a('x', '2')), txn([4, 5], r('x', '2'))],
    expect: ['lost-append', 'G0-realtime', 'G-single-realtime'],
  },
  {
    name: 'a stale read',
    history: [txn([0, 1], a('x', '1')), txn([2, 3], r('x', '')), txn([4, 5], r('x', '1'))],
    expect: ['G-single-realtime'],
  },
  {
    name: 'a client that does not see its own write',
    history: [by('c', txn([0, 1], a('x', '1'))), by('c', txn([2, 3], r('x', ''))), txn([4, 5], r('x', '1'))],
    expect: ['G-single-session'],
  },
  {
    name: 'a read before the append began',
    history: [txn([0, 1], r('x', '1')), txn([2, 3], a('x', '1'))],
    expect: ['G1c-realtime'],
  },
  {
    name: 'a read of unknown outcome before it began',
    history: [txn([0, 1], r('x', '1')), txn([2, null], a('x', '1'))],
    expect: ['G1c-realtime'],
  },
  {
    name: 'appends in another order than time',
    history: [txn([0, 1], a('x', '1')), txn([2, 3], a('x', '2')), txn([4, 5], r('x', '2 1'))],
    expect: ['G0-realtime'],
  },
  {
    name: 'write skew that only the order of time shows',
    history: [txn([0, 1], a('x', '1')), txn([2, 3], a('y', '1')), txn([0, 9], r('x', ''), r('y', '1'))],
    expect: ['G-single-realtime'],
  },
];

describe('transactions', () => {
  it.each([...good, ...bad])('$name: $expect', ({ history, expect: expected }) => {
    const { anomalies, explanation, result } = checkTransactions(history);
    expect(
      anomalies.map(({ type }) => type),
      explanation,
    ).toEqual(expected);
    expect(result).toBe(expected.length === 0 ? 'ok' : 'violation');
    expect(explanation === '').toBe(expected.length === 0);
  });

  it('the gravest anomaly comes first, wherever it is in the history', () => {
    const skew = [txn([0, 9], r('x', ''), a('y', '1')), txn([0, 9], r('y', ''), a('x', '1'))];
    const half = [txn([0, 9], a('u', '1'), a('v', '1')), txn([0, 9], r('u', '1'), r('v', ''))];
    for (const history of [
      [...skew, ...half],
      [...half, ...skew],
    ]) {
      expect(checkTransactions(history).anomalies.map(({ type }) => type)).toEqual(['G-single', 'G2']);
    }
  });

  it('a cycle is found however little a search may look at', () => {
    const graph = new Graph(100);
    for (let i = 0; i < 100; i++) graph.add({ from: i, to: (i + 1) % 100, kind: WW, key: 'x', element: `${i}` });
    expect(findCycles(graph, WW, 0)).toMatchObject([{ type: 'G0', edges: { length: 100 } }]);
  });

  it('the order of time binds only where it is asked for', () => {
    const stale = [txn([0, 1], a('x', '1')), txn([2, 3], r('x', '')), txn([4, 5], r('x', '1'))];
    expect(checkTransactions(stale, { level: 'serializable' }).result).toBe('ok');
    expect(checkTransactions(stale, { level: 'session' }).result).toBe('ok');
    const own = stale.map((record) => by('c', record));
    expect(checkTransactions(own, { level: 'serializable' }).result).toBe('ok');
    expect(checkTransactions(own, { level: 'session' }).result).toBe('violation');
  });

  it('a history that appends one element twice is undecided', () => {
    const verdict = checkTransactions([txn([0, 1], a('x', '1')), txn([2, 3], a('x', '1'))]);
    expect(verdict).toMatchObject({ result: 'undecided', explanation: expect.stringContaining('"1"') });
  });

  it('more dependencies than allowed are undecided, not passed', () => {
    expect(checkTransactions(random(new SeededRandom(1), 200), { edgesMax: 100 }).result).toBe('undecided');
  });

  it('an explanation names the transactions of the shortest cycle and why each must come before the next', () => {
    const noise = Array.from({ length: 20 }, (_, i) => txn([20 + i, 21 + i], a('z', `${i}`)));
    const { anomalies } = checkTransactions([
      by('w', txn([0, 9], a('x', '1'), a('y', '2'))),
      by('r', txn([0, 9], r('x', '1'), r('y', ''))),
      ...noise,
    ]);
    expect(anomalies.map(({ explanation }) => explanation.split('\n'))).toEqual([
      [
        'G-single (a transaction saw one part of another and missed another part, or overwrote what it had not seen):',
        '    T1 = [0 – 9] client r: get(x) = ["1"], get(y) = []: committed',
        '    T2 = [0 – 9] client w: append(x, "1"), append(y, "2"): committed',
        '    T1 came before T2: T1 read "y" without "2", which T2 appended',
        '    T2 came before T1: T1 read "1" in "x", which T2 appended',
        '    and so each came before itself.',
      ],
    ]);
  });
});

/** Whether some order explains everything: tries all of them, with each choice of those of unknown outcome. */
function bruteForce(history: readonly TxnRecord[]): boolean {
  const explore = (lists: ReadonlyMap<string, readonly string[]>, left: readonly TxnRecord[]): boolean => {
    if (left.every(({ t1 }) => t1 === null)) return true;
    return left.some((next) => {
      const blocked = left.some((other) => other !== next && other.t1 !== null && other.t1 < next.t0);
      const after = blocked ? undefined : apply(lists, next);
      return (
        after !== undefined &&
        explore(
          after,
          left.filter((other) => other !== next),
        )
      );
    });
  };
  return explore(
    new Map(),
    history.filter(({ ok, t1 }) => ok || t1 === null),
  );
}

function apply(
  lists: ReadonlyMap<string, readonly string[]>,
  { ops, t1 }: TxnRecord,
): ReadonlyMap<string, readonly string[]> | undefined {
  const after = new Map(lists);
  for (const op of ops) {
    const list = after.get(op.k) ?? [];
    if (op.op === 'append') after.set(op.k, [...list, op.v]);
    else if (t1 !== null && list.join(' ') !== (op.out ?? []).join(' ')) return undefined;
  }
  return after;
}

/** What a store did that is right almost always: each transaction at a moment of its own, now and then with a fault. */
function random(from: Random, count: number, faultPerMille = 0): TxnRecord[] {
  const lists = new Map<string, string[]>();
  const before = new Map<string, string[]>();
  const history: TxnRecord[] = [];
  const faulty = (): boolean => from.int(1_000) < faultPerMille;
  for (let i = 0; i < count; i++) {
    const at = 4 * i;
    const unknown = from.int(8) === 0;
    const lost = (unknown && from.int(2) === 0) || faulty();
    const ops: TxnOp[] = [];
    const added = new Map<string, string[]>();
    for (let j = 0; j <= from.int(4); j++) {
      const k = `k${Math.floor(i / 60)}.${from.int(3)}`; // Now and then other keys, so that lists stay short.
      const mine = added.get(k) ?? [];
      if (from.int(2) === 0) {
        added.set(k, [...mine, `${i}.${j}`]);
        ops.push({ k, op: 'append', v: `${i}.${j}` });
      } else {
        const seen = (faulty() ? before : lists).get(k) ?? [];
        ops.push(unknown ? { k, op: 'get' } : { k, op: 'get', out: [...seen, ...mine] });
      }
    }
    for (const [k, list] of lists) if (from.int(3) === 0) before.set(k, [...list]);
    for (const [k, mine] of added) if (!lost && !faulty()) lists.set(k, [...(lists.get(k) ?? []), ...mine]);
    const abort = !unknown && lost && from.int(2) === 0;
    const [t0, t1] = [at - from.int(12), unknown ? null : at + from.int(12)];
    history.push({ c: from.int(3), op: 'txn', ops, ok: !unknown && !abort, t0, t1 });
  }
  return history;
}

describe('transactions, against every order', () => {
  it('an anomaly is found exactly where there is no explanation', () => {
    const verdicts = { ok: 0, violation: 0 };
    const seeds = fc.tuple(fc.nat(), fc.integer({ min: 1, max: 6 }), fc.constantFrom(0, 100, 250));
    fc.assert(
      fc.property(seeds, ([seed, count, faults]) => {
        const history = random(new SeededRandom(seed), count, faults);
        const expected = bruteForce(history) ? 'ok' : 'violation';
        verdicts[expected] += 1;
        const { result, explanation } = checkTransactions(history);
        expect(result, explanation).toBe(expected);
      }),
      { numRuns: 3_000 },
    );
    expect(Math.min(verdicts.ok, verdicts.violation)).toBeGreaterThan(200); // Both kinds were met.
  });

  it('what is found in a long history excludes every explanation, and a good one passes', () => {
    expect(checkTransactions(random(new SeededRandom(3), 5_000)).result).toBe('ok');
    const { anomalies, result } = checkTransactions(random(new SeededRandom(3), 5_000, 1));
    expect(result).toBe('violation');
    for (const { transactions, type } of anomalies) {
      // The few transactions of an anomaly of the data fail by themselves; those of time need those between them.
      if (!type.endsWith('time') && transactions.length < 6) expect(bruteForce(transactions)).toBe(false);
    }
  });
});
