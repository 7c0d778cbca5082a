/**
 * Transactions that write, and read at a revision at which this client has read before: the past does not change. In
 * version 0.1 such a transaction may be refused as one that reads the future; a later version accepts it.
 */
import { type ErrorCode, ServiceError } from '@remora/base';
import type { TxnAnswer } from 'remora';
import { type MakeWorkers, namesFor } from './workload.ts';

const KEYS = 4;
/** Reasons that say nothing about the past. */
const REFUSALS: ReadonlySet<ErrorCode> = new Set([
  ...(['FUTURE_REVISION', 'COMPACTED', 'UNKNOWN_OUTCOME', 'UNAVAILABLE'] as const),
  ...(['DEADLINE_EXCEEDED', 'RESOURCE_EXHAUSTED', 'RESULT_LOST'] as const),
]);

export const pastReads: MakeWorkers = (client) => {
  const { remora, random } = client;
  const value = namesFor(client, 'p');
  // The keys are in several ranges, some of which change less often than others.
  const keyOf = (): string => `${['a', 'm', 'txn', 'z'][random.int(KEYS)]}/past/${random.int(KEYS)}`;
  return [
    async () => {
      const keys = [keyOf(), keyOf()];
      const own = keyOf();
      try {
        const seen = await remora.kv.txn({ success: keys.map((get) => ({ get })) });
        const again = await remora.kv.txn({
          success: [{ put: own, value: value() }, ...keys.map((get) => ({ get, revision: seen.revision }))],
        });
        const [before, after] = [seen.results, again.results.slice(1)].map((results) => shown(results));
        if (before === after) return;
        throw new Error(`at revision ${seen.revision}, ${keys.join(' and ')} were ${before} and later ${after}`);
      } catch (error) {
        if (!(error instanceof ServiceError) || !REFUSALS.has(error.code)) throw error;
      }
    },
  ];
};

/** Leases are bigints. */
function shown(results: readonly TxnAnswer[]): string {
  return JSON.stringify(results, (_key, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
}
