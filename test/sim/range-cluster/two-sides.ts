/** Load on the keys on both sides of 'm', and observations of its effects. */
import type { Row } from '@remora/base';
import type { KvOp } from '@remora/protocol';
import type { RangeReplica } from '../../../packages/dataserver/src/range/range-replica.ts';
import { rangeSpans } from '../../../packages/dataserver/src/state/bounds.ts';
import { put } from '../../../packages/dataserver/test/support/state-bed.ts';
import { GATEWAY_NODE, type RangeCluster } from './bed.ts';

export const KEYS: readonly string[] = ['a', 'b', 'y', 'z'];

type PutOp = Exclude<KvOp, { type: 'txn' }>;

/** Writes keys on both sides, one after the other, and watches one of them. */
export class TwoSides {
  readonly #bed: RangeCluster;
  readonly acknowledged = new Map<string, number>();
  readonly seen: string[] = [];
  readonly faults: string[] = [];
  readonly #counts = new Map<string, number>();
  /** Per key: when its last write was acknowledged, and the longest wait for an acknowledgement. */
  readonly longestMs = new Map<string, number>();
  stopped = false;

  constructor(bed: RangeCluster) {
    this.#bed = bed;
    for (const key of KEYS) this.#write(key);
    this.#backend.watch(
      { key: Buffer.from('z'), startRevision: 1, noPut: false, noDelete: false, prevKv: false },
      {
        onCreated: () => {},
        onEvents: (events) => {
          for (const { kv } of events) this.seen.push(Buffer.from(kv.value).toString());
        },
        onProgress: () => {},
        onEnd: (error) => void this.faults.push(`the watch ended: ${error.message}`),
      },
    );
  }

  get #backend() {
    const backend = this.#bed.node(GATEWAY_NODE).running?.backend;
    if (backend === undefined) throw new Error('the gateway runs');
    return backend;
  }

  #write(key: string): void {
    if (this.stopped) return;
    const count = (this.#counts.get(key) ?? 0) + 1;
    this.#counts.set(key, count);
    const begunMs = this.#bed.clock.monotonicMs();
    const op = put(key, String(count)) as PutOp;
    this.#backend.command({ type: 'kv', op }, { timeoutMs: 30_000 }, (error) => {
      if (error !== undefined) this.faults.push(`${key}: ${error.code} ${error.message}`);
      else this.acknowledged.set(key, count);
      const tookMs = this.#bed.clock.monotonicMs() - begunMs;
      this.longestMs.set(key, Math.max(this.longestMs.get(key) ?? 0, tookMs));
      this.#bed.clock.setTimer(20, () => this.#write(key));
    });
  }
}

export function replicaAt(bed: RangeCluster, nodeId: number, rangeId: number): RangeReplica | undefined {
  return [...(bed.node(nodeId).running?.store?.replicas() ?? [])].find((replica) => replica.rangeId === rangeId);
}

/** The leases, locks, keys and history in a replica's rows. */
export async function rowsOf(bed: RangeCluster, nodeId: number, rangeId: number): Promise<readonly Row[]> {
  const bounds = replicaAt(bed, nodeId, rangeId)?.state.bounds;
  if (bounds === undefined) throw new Error(`node ${nodeId} has no replica of range ${rangeId}`);
  const spans = rangeSpans(rangeId, bounds).slice(0, -1);
  return (await Promise.all(spans.map((span) => bed.node(nodeId).engine.scan(span)))).flat();
}
