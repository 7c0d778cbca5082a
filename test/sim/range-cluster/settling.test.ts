import type { KvOp } from '@remora/protocol';
import { expect, test } from 'vitest';
import type { RangeReplica } from '../../../packages/dataserver/src/range/range-replica.ts';
import { put } from '../../../packages/dataserver/test/support/state-bed.ts';
import { DATA_NODES, GATEWAY_NODE, RangeCluster } from './bed.ts';
import { replicaAt } from './two-sides.ts';

/** Of range 2 and of range 3. */
const KEYS = ['a', 'z'];

/** Puts both keys in one transaction; tells when, and how, that ended. */
function putBoth(bed: RangeCluster, node: number, value: string): { answer: string; tookMs: number } {
  const startMs = bed.clock.monotonicMs();
  const ended = { answer: 'none', tookMs: 0 };
  const success: readonly KvOp[] = KEYS.map((key) => put(key, value));
  const txn = { compare: [], success, failure: [] };
  bed.node(node).running?.backend.command({ type: 'txn', txn }, { timeoutMs: 10_000 }, (error) => {
    ended.answer = error?.code ?? 'done';
    ended.tookMs = bed.clock.monotonicMs() - startMs;
  });
  return ended;
}

function leaderOf(bed: RangeCluster, rangeId: number): RangeReplica | undefined {
  return replicaAt(bed, bed.leaders(rangeId)[0] ?? 0, rangeId);
}

/** Lets the gateway end when its decision is in the log: it is applied, and nobody else hears of it. */
async function endBehindDecision(bed: RangeCluster): Promise<void> {
  const [home, other] = [2, 3].map((rangeId) => leaderOf(bed, rangeId));
  const isPrepared = (): boolean => home?.state.transactions.prepared === 1 && other?.state.transactions.prepared === 1;
  const isSent = (): boolean => (home?.group.status().lastIndex ?? 0) > (home?.state.applied.index ?? 0);
  for (let i = 0; i < 500 && !(isPrepared() && isSent()); i++) await bed.run(1);
  await bed.crash(GATEWAY_NODE);
  await bed.run(50);
  const [record] = [...(home?.state.transactions.records ?? [])];
  expect(record?.commit).toBeDefined();
  expect(other?.state.transactions.prepared).toBe(1);
}

test('what a coordinator left undone after its decision holds up a later transaction no longer than to ask', async () => {
  const bed = new RangeCluster(3, { borders: ['m'], splits: [] });
  await bed.start();
  putBoth(bed, GATEWAY_NODE, 'first');
  await endBehindDecision(bed);
  const later = putBoth(bed, DATA_NODES[0] ?? 1, 'later');
  await bed.run(6_000);
  expect(later.answer).toBe('done');
  expect(later.tookMs).toBeLessThan(1_000); // The first one expires after 3 s.
});
