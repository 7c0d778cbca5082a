/**
 * Transactions over several keys, each of which holds a list: some lists are read, to some an element is appended.
 * Reads come first, at one moment. The writes require that nothing has changed since.
 */
import { ServiceError } from '@remora/base';
import type { RemoraClient, TxnCompare } from 'remora';
import type { TxnOp } from '../../checkers/index.ts';
import { type Client, type MakeWorkers, namesFor } from './workload.ts';

const KEYS = 6;
const KEYS_PER_TXN = 3;

export function txnKeys(r: number): readonly string[] {
  return Array.from({ length: KEYS }, (_, i) => keyOf(r, i));
}

function keyOf(r: number, i: number): string {
  return `txn/${r}/${i}`;
}

export const txns: MakeWorkers = (client) => {
  const element = namesFor(client, 't');
  return [client.remora, client.remora, client.hasty].map((remora, i) => () => {
    const r = client.journal.round;
    return perform({ client, remora, c: `${client.name}.txn${i}`, r, ops: drawOps(client, r, element) });
  });
};

interface Txn {
  readonly client: Client;
  readonly remora: RemoraClient;
  readonly c: string;
  readonly r: number;
  readonly ops: readonly TxnOp[];
}

interface Seen {
  readonly list: readonly string[];
  readonly modRevision: number;
}

/** Each key is read, or appended to, or read and then appended to. */
function drawOps({ random }: Client, r: number, element: () => string): readonly TxnOp[] {
  const keys = new Set(Array.from({ length: 1 + random.int(KEYS_PER_TXN) }, () => keyOf(r, random.int(KEYS))));
  return [...keys].flatMap((k): readonly TxnOp[] => {
    const kind = random.int(3);
    const get = { k, op: 'get' } as const;
    if (kind === 0) return [get];
    const append = { k, op: 'append', v: element() } as const;
    return kind === 1 ? [append] : [get, append];
  });
}

async function perform({ client, remora, c, r, ops }: Txn): Promise<void> {
  const operation = client.journal.begin('txns', r, { c, ops });
  const keys = [...new Set(ops.map(({ k }) => k))];
  let seen: ReadonlyMap<string, Seen>;
  try {
    seen = await readLists(remora, keys);
  } catch (error) {
    operation.end('refused', { code: codeOf(error) }); // Nothing was written yet.
    return;
  }
  const reads = ops.flatMap(({ op, k }) => (op === 'get' ? [seen.get(k)?.list ?? []] : []));
  if (ops.every(({ op }) => op === 'get')) return operation.end('done', { a: { ok: true, reads } });
  try {
    const { succeeded } = await remora.kv.txn({
      compare: [...seen].map(
        ([key, { modRevision }]): TxnCompare => ({ key, target: 'modRevision', is: '=', than: modRevision }),
      ),
      success: ops.flatMap(({ op, k, ...rest }) =>
        op === 'append' && 'v' in rest ? [{ put: k, value: [...(seen.get(k)?.list ?? []), rest.v].join(' ') }] : [],
      ),
    });
    operation.end('done', { a: succeeded ? { ok: true, reads } : { ok: false } });
  } catch (error) {
    const isUnknown = error instanceof ServiceError && error.mayBeApplied;
    operation.end(isUnknown ? 'unknown' : 'refused', { code: codeOf(error) });
  }
}

async function readLists(remora: RemoraClient, keys: readonly string[]): Promise<ReadonlyMap<string, Seen>> {
  const { results } = await remora.kv.txn({ success: keys.map((get) => ({ get })) });
  return new Map(
    results.map((result, i) => {
      const [found] = result.type === 'get' ? result.kvs : [];
      return [keys[i] ?? '', { list: elementsOf(found?.value.toString() ?? ''), modRevision: found?.modRevision ?? 0 }];
    }),
  );
}

/** The list that a key of this workload holds. */
export function elementsOf(text: string): readonly string[] {
  return text === '' ? [] : text.split(' ');
}

function codeOf(error: unknown): string {
  if (!(error instanceof ServiceError)) throw error;
  return error.code;
}
