/** Transactions and deletes over several ranges, by etcd's KV API. */
import { Compare_CompareResult as Result, Compare_CompareTarget as Target } from '@remora/protocol/etcd';
import type { EtcdApi, Told } from './etcd-api.ts';
import type { KvCase } from './kv-cases.ts';

const bytes = (text: string): Buffer => Buffer.from(text);
/** One in each of several ranges (KV_BORDERS). */
const KEYS = ['t/a', 't/b', 't/c', 't/d'] as const;
const ALL = { key: bytes('t/'), rangeEnd: bytes('t0') };

const put = (key: string, value: string, prevKv = false) =>
  ({ request: { $case: 'requestPut', value: { key: bytes(key), value: bytes(value), prevKv } } }) as const;
const get = (key: string) => ({ request: { $case: 'requestRange', value: { key: bytes(key) } } }) as const;
const getAll = (more: object = {}) => ({ request: { $case: 'requestRange', value: { ...ALL, ...more } } }) as const;
const deleteAll = { request: { $case: 'requestDeleteRange', value: { ...ALL, prevKv: true } } } as const;

/** Begins with the four keys at versions 1 to 4, of which the last two share a revision. */
function txnCase(name: string, ...steps: readonly ((api: EtcdApi) => Promise<Told<object>>)[]): KvCase {
  return {
    name,
    async run(api) {
      const told: Told<object>[] = [await api.delete(ALL)];
      for (const [i, key] of KEYS.entries()) {
        for (let version = 0; version < i; version++) await api.put({ key: bytes(key), value: bytes(`${version}`) });
      }
      told.push(await api.txn({ success: [put('t/a', 'A'), put('t/b', 'B')] }));
      told.push(await api.txn({ success: [put('t/c', 'C'), put('t/d', 'D')] }));
      for (const step of steps) told.push(await step(api));
      told.push(await api.range(ALL));
      return told;
    },
  };
}

interface Wanted {
  readonly key: string;
  readonly rangeEnd?: string;
  readonly target: keyof typeof Target;
  readonly result: keyof typeof Result;
  readonly union: NonNullable<Parameters<EtcdApi['txn']>[0]['compare']>[number]['targetUnion'];
}

const compare = ({ key, rangeEnd = '', target, result, union }: Wanted) => ({
  ...{ key: bytes(key), rangeEnd: bytes(rangeEnd), target: Target[target], result: Result[result], targetUnion: union },
});

const version = (value: number) => ({ $case: 'version', value: BigInt(value) }) as const;
const text = (value: string) => ({ $case: 'value', value: bytes(value) }) as const;
const created = (value: number) => ({ $case: 'createRevision', value: BigInt(value) }) as const;

const RESULTS = Object.keys(Result) as (keyof typeof Result)[];

const COMPARES: readonly KvCase[] = [
  ...RESULTS.map((result) => ({
    name: `versions of two ranges, ${result}`,
    wanted: (i: number): Wanted => ({ key: KEYS[i] ?? '', target: 'VERSION', result, union: version(i + 1) }),
  })),
  ...RESULTS.map((result) => ({
    name: `values of two ranges, ${result}`,
    wanted: (i: number): Wanted => ({ key: KEYS[i] ?? '', target: 'VALUE', result, union: text('CC') }),
  })),
  ...RESULTS.map((result) => ({
    name: `whether all keys of a span are there, ${result}`,
    wanted: (): Wanted => ({ key: 't/', rangeEnd: 't0', target: 'CREATE', result, union: created(0) }),
  })),
  {
    name: 'a key that is not there',
    wanted: (i: number): Wanted => ({ key: `t/x${i}`, target: 'VERSION', result: 'EQUAL', union: version(0) }),
  },
  {
    name: 'a span without keys, whatever is asked of them',
    wanted: (): Wanted => ({ key: 't/x', rangeEnd: 't/y', target: 'VERSION', result: 'GREATER', union: version(9) }),
  },
].map(({ name, wanted }) =>
  txnCase(`a transaction compares ${name}`, (api) =>
    api.txn({
      compare: [compare(wanted(1)), compare(wanted(3))],
      success: [put('t/a', 'held', true), get('t/b'), put('t/d', 'held', true)],
      failure: [getAll({ limit: 3n }), deleteAll, getAll({ countOnly: true })],
    }),
  ),
);

export const TXN_CASES: readonly KvCase[] = [
  ...COMPARES,
  txnCase('a transaction reads what it writes, in its order', (api) =>
    api.txn({
      success: [getAll(), put('t/b', 'new'), get('t/b'), put('t/e', 'more'), getAll({ limit: 3n }), getAll()],
    }),
  ),
  txnCase('a transaction deletes over ranges, and reads before and behind it', (api) =>
    api.txn({ success: [getAll({ keysOnly: true }), deleteAll, getAll()] }),
  ),
  txnCase('transactions are nested', (api) => {
    const inner = {
      compare: [compare({ key: 't/c', target: 'VERSION', result: 'EQUAL', union: version(3) })],
      success: [put('t/c', 'inner', true), getAll({ keysOnly: true })],
      failure: [deleteAll],
    };
    const nested = { request: { $case: 'requestTxn', value: inner } } as const;
    return api.txn({ success: [put('t/a', 'outer', true), nested, getAll()] });
  }),
  txnCase(
    'what is not allowed is refused with the same words, and changes nothing',
    (api) => api.txn({ success: [put('t/a', 'x'), put('t/a', 'y')] }),
    (api) => api.txn({ success: [put('t/a', 'x'), deleteAll] }),
    (api) => api.txn({ success: [put('t/a', 'x'), getAll({ revision: 1_000_000_000n })] }),
    (api) => api.txn({ success: Array.from({ length: 129 }, (_, i) => put(`t/${i}`, 'x')) }),
    (api) => api.txn({ success: [put('', 'x'), put('t/b', 'x')] }),
    (api) => api.put({ key: bytes('t/a'), value: bytes('x'), lease: 4_711n }),
    (api) =>
      api.txn({
        success: [put('t/b', 'x'), { request: { $case: 'requestPut', value: { key: bytes('t/c'), lease: 4_711n } } }],
      }),
    (api) =>
      api.txn({
        success: [
          put('t/b', 'x'),
          { request: { $case: 'requestPut', value: { key: bytes('t/x'), ignoreValue: true } } },
        ],
      }),
  ),
  txnCase(
    'deletes say how many and what',
    (api) => api.delete({ key: bytes('t/b'), rangeEnd: bytes('t/d'), prevKv: true }),
    (api) => api.delete({ key: bytes('t/b'), rangeEnd: bytes('t/d'), prevKv: true }),
    (api) => api.delete({ ...ALL, prevKv: true }),
  ),
];
