/** The complete history of plain keys, from the leader of each range. */
import { KV_SPACE, type KvEvent } from '@remora/protocol';
import type { RangeCluster } from './bed.ts';

interface Keys {
  readonly start: string;
  readonly end: string;
}

/**
 * Returns the events in the order of revisions. Takes a while of virtual time.
 *
 * @throws {Error} if a range does not return its history.
 */
export async function keyHistory(
  bed: RangeCluster,
  gateway: number,
  { start, end }: Keys,
): Promise<readonly KvEvent[]> {
  const starts = bed.view.ranges.map((range) => Buffer.from(range.start)).filter(([space]) => space === KV_SPACE);
  const borders = starts.map((key) => key.subarray(1).toString()).filter((key) => key > start && key < end);
  const keys = [start, ...borders, end].map((key) => Buffer.from(key));
  const parts = keys.slice(0, -1).map((key, i) => watchFromTheFirst(bed, gateway, { key, end: keys[i + 1] ?? key }));
  await bed.run(2_500);
  return parts.flatMap((events) => events()).sort((a, b) => a.kv.modRevision - b.kv.modRevision);
}

function watchFromTheFirst(
  bed: RangeCluster,
  gateway: number,
  { key, end }: { readonly key: Buffer; readonly end: Buffer },
): () => readonly KvEvent[] {
  const found: KvEvent[] = [];
  let upTo = 0;
  const control = bed.node(gateway).running?.backend.watch(
    { key, end, startRevision: 1, noPut: false, noDelete: false, prevKv: false },
    {
      onCreated: () => undefined,
      onEvents: (events, revision) => {
        for (const event of events) found.push(event);
        upTo = revision;
      },
      onProgress: (revision) => {
        upTo = revision;
      },
      onEnd: (error) => {
        throw error;
      },
    },
  );
  const retryUntilAnswered = (tries: number): void => {
    if (upTo > 0 || tries === 0) return;
    control?.progress();
    bed.clock.setTimer(100, () => retryUntilAnswered(tries - 1));
  };
  bed.clock.setTimer(100, () => retryUntilAnswered(20));
  return () => {
    control?.cancel();
    if (upTo === 0)
      throw new Error(`the history of keys from ${key} to ${end} was not told: nothing can be held against it`);
    return found;
  };
}
