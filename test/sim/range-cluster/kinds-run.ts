/** One run of clients with locks of all kinds, while nodes crash and are cut off, and ranges split and merge. */
import { LOCK_SPACE } from '@remora/lock';
import { RangeCluster, type RangePlan } from './bed.ts';
import { KindsLoad } from './kinds-load.ts';
import { misfortune, recover } from './misfortune.ts';
import { checkReplicas } from './replica-check.ts';

const PLAN: RangePlan = {
  borders: ['leases', 'lock:rw1'],
  splits: ['leases', 'lock:rw0', 'lock:rw1', 'lock:sem', 'k1'],
  ...{ merges: 20, leases: true },
};
const LOAD_MS = 6_000;
const SPLITS = 15;
const CLIENTS = 9;
const LOCK_ROWS = { start: Buffer.from([LOCK_SPACE]), end: Buffer.from([LOCK_SPACE + 1]) };

export interface KindsResult {
  readonly faults: readonly string[];
  readonly figures: Readonly<Record<string, number>>;
}

export async function runSeed(seed: number): Promise<KindsResult> {
  let load: KindsLoad | undefined;
  try {
    const bed = new RangeCluster(seed, PLAN);
    await bed.start();
    const untilMs = bed.clock.monotonicMs() + LOAD_MS;
    load = new KindsLoad(bed);
    for (let i = 0; i < CLIENTS; i++) void load.client(untilMs);
    void load.looker(untilMs);
    void load.operator(untilMs);
    for (let i = 0; i < SPLITS; i++)
      bed.clock.setTimer(bed.laterRandom.int(LOAD_MS), () => bed.ranges.splitSomewhere());
    for (let i = 0; i < (PLAN.merges ?? 0); i++) {
      bed.clock.setTimer(bed.laterRandom.int(LOAD_MS), () => bed.ranges.mergeSomewhere());
    }
    await misfortune(bed, untilMs, () => {});
    await recover(bed);
    void load.end();
    await bed.run(5_000);
    const faults = [...load.check(), ...(await checkReplicas(bed)), ...(await locksLeft(bed))];
    return { faults, figures: { ...load.figures, splits: bed.ranges.splits, merges: bed.ranges.merged } };
  } catch (error) {
    const stopped = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return { faults: [...(load?.faults ?? []), stopped], figures: {} };
  }
}

/** KL4. */
async function locksLeft(bed: RangeCluster): Promise<readonly string[]> {
  const left: string[] = [];
  for (const id of bed.dataNodes) {
    const rows = await bed.node(id).engine.scan(LOCK_ROWS);
    if (rows.length > 0) left.push(`KL4: node ${id} has ${rows.length} rows of locks left`);
  }
  return left;
}
