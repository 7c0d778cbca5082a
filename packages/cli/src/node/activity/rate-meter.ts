import type { Clock, HistogramReading } from '@remora/base';
import { type RequestSort, sortOfKind } from '@remora/gateway';
import type { NodeRates } from '@remora/protocol';
import { quantile } from './quantile.ts';

export interface RateMeterDeps {
  readonly clock: Clock;
  /** What a histogram of this node has counted, by its name. */
  readonly reading: (name: string) => HistogramReading | undefined;
}

/** What the node has counted up to a moment. */
export interface Counted {
  readonly atMs: number;
  /** By sort of request, for each bucket. */
  readonly requests: ReadonlyMap<RequestSort, Buckets>;
  readonly syncs: Buckets;
  readonly commits: Buckets;
}

interface Buckets {
  readonly bounds: readonly number[];
  readonly counts: readonly number[];
}

const NOTHING: Buckets = { bounds: [], counts: [] };
const SORTS: readonly RequestSort[] = ['read', 'write', 'lock', 'other'];

/** Rates and quantiles of a span of time: the difference of what histograms had counted at its two ends. */
export class RateMeter {
  readonly #deps: RateMeterDeps;

  constructor(deps: RateMeterDeps) {
    this.#deps = deps;
  }

  counted(): Counted {
    const { clock, reading } = this.#deps;
    const requests = reading('remora_request_seconds');
    return {
      atMs: clock.monotonicMs(),
      requests: new Map(
        SORTS.map((sort) => [sort, summed(requests, ({ kind = '' }) => sortOfKind(kind) === sort)] as const),
      ),
      syncs: summed(reading('remora_log_sync_seconds')),
      commits: summed(reading('remora_commit_seconds')),
    };
  }

  /** Absent: nothing was counted, or it is not counted on this node. */
  between(from: Counted, to: Counted): NodeRates {
    const seconds = (to.atMs - from.atMs) / 1_000;
    if (seconds <= 0) return {};
    const of = (sort: RequestSort): Buckets => less(to.requests.get(sort), from.requests.get(sort));
    const all = SORTS.map(of).reduce(plus, NOTHING);
    const isCounted = (to.requests.get('other')?.counts.length ?? 0) > 0;
    const perS = (buckets: Buckets): number => total(buckets) / seconds;
    return {
      ...(isCounted && {
        requestsPerS: perS(all),
        readsPerS: perS(of('read')),
        writesPerS: perS(of('write')),
        locksPerS: perS(of('lock')),
      }),
      ...quantileOf('p50Ms', 0.5, all),
      ...quantileOf('p99Ms', 0.99, all),
      ...quantileOf('fsyncP99Ms', 0.99, less(to.syncs, from.syncs)),
      ...quantileOf('commitP99Ms', 0.99, less(to.commits, from.commits)),
    };
  }
}

function quantileOf(name: keyof NodeRates, q: number, { bounds, counts }: Buckets): NodeRates {
  const seconds = quantile(q, bounds, counts);
  return seconds === undefined ? {} : { [name]: seconds * 1_000 };
}

function summed(
  reading: HistogramReading | undefined,
  isWanted: (labels: Readonly<Record<string, string>>) => boolean = () => true,
): Buckets {
  if (reading === undefined) return NOTHING;
  const counts = new Array<number>(reading.bounds.length + 1).fill(0);
  for (const { labels, counts: own } of reading.series) {
    if (!isWanted(labels)) continue;
    for (const [i, count] of own.entries()) counts[i] = (counts[i] ?? 0) + count;
  }
  return { bounds: reading.bounds, counts };
}

function plus(a: Buckets, b: Buckets): Buckets {
  return { bounds: b.bounds, counts: b.counts.map((count, i) => count + (a.counts[i] ?? 0)) };
}

function less(a: Buckets = NOTHING, b: Buckets = NOTHING): Buckets {
  return { bounds: a.bounds, counts: a.counts.map((count, i) => count - (b.counts[i] ?? 0)) };
}

function total({ counts }: Buckets): number {
  return counts.reduce((sum, count) => sum + count, 0);
}
