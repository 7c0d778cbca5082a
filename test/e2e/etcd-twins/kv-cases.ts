/** What is asked of both clusters over etcd's KV API: reads of one fixture in all ways, and transactions. */
import { RangeRequest_SortOrder as Order, RangeRequest_SortTarget as Target } from '@remora/protocol/etcd';
import type { EtcdApi, Told } from './etcd-api.ts';

export interface KvCase {
  readonly name: string;
  run(api: EtcdApi, revisions: readonly number[]): Promise<readonly Told<object>[]>;
}

const FIXTURE = 'f/';
const NAMES = ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9'] as const;
const MANY = 'm/';
const MANY_KEYS = 1_200;

/**
 * Ranges of the second cluster: every key of the fixture in one of its own, those of cases and of the long list in
 * some.
 */
export const KV_BORDERS: readonly string[] = [
  ...NAMES.map((name) => FIXTURE + name),
  ...NAMES.map((name) => `${MANY}0${name}`),
  ...['t/', 't/b', 't/c', 't/d'],
];

const bytes = (text: string): Buffer => Buffer.from(text);
/** From the key, or all keys with a prefix. */
const from = (key: string) => ({ key: bytes(key), rangeEnd: bytes('\0') });
const prefixed = (prefix: string) => ({ key: bytes(prefix), rangeEnd: endOf(prefix) });

function endOf(prefix: string): Buffer {
  const end = bytes(prefix);
  end[end.length - 1] = (end.at(-1) ?? 0) + 1;
  return end;
}

/** Writes the fixture; gives the revisions of its writes in their order. */
export async function writeFixture(api: EtcdApi): Promise<readonly number[]> {
  const told: object[] = [];
  const put = async (name: string, value: string): Promise<void> => {
    told.push(await api.put({ key: bytes(FIXTURE + name), value: bytes(value) }));
  };
  // Order of keys, of creation, of the last change, of versions and of values: each is another one.
  for (const name of ['5', '2', '9', '0', '7', '3', '8', '1', '6', '4']) await put(name, `v${(Number(name) * 7) % 10}`);
  for (const name of ['3', '9', '3', '0', '6']) await put(name, `w${name}`);
  told.push(await api.delete({ key: bytes(`${FIXTURE}2`) }));
  await put('2', 'again');
  told.push(await api.delete({ key: bytes(`${FIXTURE}8`) }));
  for (let i = 0; i < MANY_KEYS; i += 100) {
    const success = Array.from({ length: 100 }, (_, j) => ({
      request: { $case: 'requestPut', value: { key: bytes(manyKey(i + j)), value: bytes(`${i + j}`) } } as const,
    }));
    told.push(await api.txn({ success }));
  }
  return told.map((each) => ('revision' in each ? Number(each.revision) : 0));
}

function manyKey(i: number): string {
  return `${MANY}${String(i % 97).padStart(3, '0')}/${String(i).padStart(5, '0')}`;
}

const ORDERS = Object.entries(Order);
const TARGETS = Object.entries(Target);

const SORTED: readonly KvCase[] = TARGETS.flatMap(([target, sortTarget]) =>
  ORDERS.map(([order, sortOrder]) => ({
    name: `by ${target}, ${order}: whole, limited, from a key, of the past`,
    run: (api: EtcdApi, revisions: readonly number[]) =>
      allOf([
        api.range({ ...prefixed(FIXTURE), sortTarget, sortOrder }),
        ...[1n, 4n, 9n, 100n].map((limit) => api.range({ ...prefixed(FIXTURE), sortTarget, sortOrder, limit })),
        api.range({ ...from(`${FIXTURE}4`), sortTarget, sortOrder, limit: 5n }),
        api.range({ ...prefixed(FIXTURE), sortTarget, sortOrder, revision: BigInt(revisions[11] ?? 0) }),
        api.range({ ...prefixed(FIXTURE), sortTarget, sortOrder, limit: 3n, revision: BigInt(revisions[11] ?? 0) }),
      ]),
  })),
);

const FILTERS = ['minModRevision', 'maxModRevision', 'minCreateRevision', 'maxCreateRevision'] as const;

const FILTERED: readonly KvCase[] = FILTERS.flatMap((filter) =>
  [0, 4, 9, 12, 16].map((at) => ({
    name: `${filter} of write ${at}: whole, limited, counted, without values`,
    run: (api: EtcdApi, revisions: readonly number[]) => {
      const request = { ...prefixed(FIXTURE), [filter]: BigInt(revisions[at] ?? 0) };
      return allOf([
        api.range(request),
        api.range({ ...request, limit: 2n }),
        api.range({ ...request, limit: 2n, sortTarget: Target.MOD, sortOrder: Order.DESCEND }),
        api.range({ ...request, countOnly: true }),
        api.range({ ...request, keysOnly: true }),
      ]);
    },
  })),
);

const SPANS: readonly KvCase[] = [
  ['one key', { key: bytes(`${FIXTURE}3`) }],
  ['a key that is not there', { key: bytes(`${FIXTURE}2x`) }],
  ['some ranges', { key: bytes(`${FIXTURE}2`), rangeEnd: bytes(`${FIXTURE}6`) }],
  ['parts of two ranges', { key: bytes(`${FIXTURE}3x`), rangeEnd: bytes(`${FIXTURE}4x`) }],
  ['nothing, over two ranges', { key: bytes(`${FIXTURE}3x`), rangeEnd: bytes(`${FIXTURE}4`) }],
  ['an end before its begin', { key: bytes(`${FIXTURE}6`), rangeEnd: bytes(`${FIXTURE}2`) }],
  ['all keys', { key: bytes('\0'), rangeEnd: bytes('\0') }],
].map(([name, span]) => ({
  name: `${name}: read, counted, without values, as it may be stale`,
  run: (api: EtcdApi) =>
    allOf(
      [{}, { countOnly: true }, { keysOnly: true }, { limit: 2n }, { serializable: true }].map((more) =>
        api.range({ ...(span as object), ...more }),
      ),
    ),
}));

const PAGED: KvCase = {
  name: 'a long list, page by page, as of one revision',
  async run(api, revisions) {
    const revision = BigInt(revisions.at(-1) ?? 0);
    const told: Told<object>[] = [];
    for (let key = bytes(MANY); ; ) {
      const page = await api.range({ key, rangeEnd: endOf(MANY), limit: 130n, revision });
      told.push(page);
      const last = 'kvs' in page && page.more ? page.kvs.at(-1) : undefined;
      if (last === undefined) return told;
      key = bytes(`${last.key}\0`);
    }
  },
};

const PAST: KvCase = {
  name: 'revisions that were, that are to come, and that are gone',
  async run(api, revisions) {
    const at = (revision: number) => api.range({ ...prefixed(FIXTURE), revision: BigInt(revision) });
    const told = [at(revisions[2] ?? 0), at(revisions[15] ?? 0), at(1_000_000_000)];
    const before = await Promise.all(told);
    const compacted = await api.compact(revisions[12] ?? 0);
    const after = await Promise.all([at(revisions[2] ?? 0), at(revisions[12] ?? 0), at(revisions[15] ?? 0)]);
    return [...before, compacted, ...after, await api.compact(revisions[3] ?? 0), await api.compact(1_000_000_000)];
  },
};

/** The last one compacts. */
export const KV_READS: readonly KvCase[] = [...SORTED, ...FILTERED, ...SPANS, PAGED, PAST];

function allOf(asked: readonly Promise<Told<object>>[]): Promise<readonly Told<object>[]> {
  return Promise.all(asked);
}
