/** One run of clients with etcd watch streams, while ranges split, merge and move, and nodes fail. */
import { GATEWAY_NODE, RangeCluster, type RangePlan } from './bed.ts';
import { keyHistory } from './key-history.ts';
import { KvLoad } from './kv-load.ts';
import { misfortune, recover } from './misfortune.ts';
import { StreamLoad } from './stream-load.ts';
import { Truth } from './truth.ts';

const PLAN: RangePlan = {
  borders: ['k1', 'k3'],
  splits: ['k1', 'k2', 'k3'],
  ...{ merges: 30, moves: 8 },
};
const LOAD_MS = 5_000;
const SPLITS = 15;
/** By then everything that an ended coordinator left is resolved. Nothing can be closed before. */
const ANSWER_MS_MAX = 30_000;

export interface StreamResult {
  readonly faults: readonly string[];
  readonly figures: Readonly<Record<string, number>>;
}

export async function runSeed(seed: number): Promise<StreamResult> {
  try {
    const bed = new RangeCluster(seed, PLAN);
    await bed.start();
    const untilMs = bed.clock.monotonicMs() + LOAD_MS;
    const kv = new KvLoad(bed);
    const newest = (): number => kv.observations.reduce((high, { reply }) => Math.max(high, reply?.revision ?? 0), 0);
    const streams = new StreamLoad(bed, newest);
    for (let i = 0; i < 5; i++) kv.client(untilMs);
    for (const id of [GATEWAY_NODE, GATEWAY_NODE, ...bed.dataNodes]) streams.client(id, untilMs);
    for (let i = 0; i < SPLITS; i++) {
      bed.clock.setTimer(bed.laterRandom.int(LOAD_MS), () => bed.ranges.splitSomewhere());
    }
    for (let i = 0; i < (PLAN.merges ?? 0); i++) {
      bed.clock.setTimer(bed.laterRandom.int(LOAD_MS), () => bed.ranges.mergeSomewhere());
    }
    for (let i = 0; i < (PLAN.moves ?? 0); i++) {
      bed.clock.setTimer(bed.laterRandom.int(LOAD_MS), () => bed.ranges.moveSomething());
    }
    await misfortune(bed, untilMs, () => {});
    await recover(bed);
    streams.askAll();
    for (let waitedMs = 0; waitedMs < ANSWER_MS_MAX && !streams.answered; waitedMs += 100) await bed.run(100);
    const truth = new Truth(await keyHistory(bed, GATEWAY_NODE, { start: 'k', end: 'l' }));
    const faults = streams.check(truth);
    const { splits, merged: merges, moves } = bed.ranges;
    return { faults, figures: { ...streams.figures, splits, merges, moves: moves.moved } };
  } catch (error) {
    return { faults: [error instanceof Error ? (error.stack ?? error.message) : String(error)], figures: {} };
  }
}
