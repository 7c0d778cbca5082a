/** One run of clients that write under locks, while nodes and coordinators end, and ranges split and merge. */
import { GATEWAY_NODE, RangeCluster, type RangePlan } from './bed.ts';
import { FenceLoad } from './fence-load.ts';
import { keyHistory } from './key-history.ts';
import { misfortune, recover } from './misfortune.ts';
import { checkReplicas } from './replica-check.ts';

const PLAN: RangePlan = {
  borders: ['leases', 'lock:f1', 'k'],
  splits: ['leases', 'lock:f0', 'lock:f1', 'lock:f2', 'k', 'p'],
  ...{ merges: 10, transactions: true },
};
const LOAD_MS = 8_000;
const SPLITS = 15;
const CLIENTS = 10;

export interface FenceResult {
  readonly faults: readonly string[];
  readonly figures: Readonly<Record<string, number>>;
}

export async function runSeed(seed: number): Promise<FenceResult> {
  try {
    const bed = new RangeCluster(seed, PLAN);
    await bed.start();
    const untilMs = bed.clock.monotonicMs() + LOAD_MS;
    const load = new FenceLoad(bed);
    for (let i = 0; i < CLIENTS; i++) void load.client(untilMs);
    for (let i = 0; i < SPLITS; i++) {
      bed.clock.setTimer(bed.laterRandom.int(LOAD_MS), () => bed.ranges.splitAmidTransaction());
    }
    for (let i = 0; i < (PLAN.merges ?? 0); i++) {
      bed.clock.setTimer(bed.laterRandom.int(LOAD_MS), () => bed.ranges.mergeSomewhere());
    }
    await misfortune(bed, untilMs, () => {});
    await recover(bed);
    await bed.run(5_000);
    const events = await keyHistory(bed, GATEWAY_NODE, { start: 'j', end: 's' });
    const faults = [...load.check(events), ...(await checkReplicas(bed))];
    const kills = [...bed.kills.values()].reduce((sum, n) => sum + n, 0);
    const { splits, merged: merges, splitsAmidTransactions } = bed.ranges;
    const ranges = { splits, merges, 'splits amid transactions': splitsAmidTransactions };
    return { faults, figures: { ...load.figures, ...ranges, 'coordinators ended': kills } };
  } catch (error) {
    return { faults: [error instanceof Error ? (error.stack ?? error.message) : String(error)], figures: {} };
  }
}
