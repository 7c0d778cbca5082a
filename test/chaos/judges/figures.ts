/** Statistics of a run: how operations ended, how long they took, and when nothing made progress. */
import { quantile } from '../../support/quantile.ts';
import type { How } from '../journal/lines.ts';
import type { Operation } from './evidence.ts';

/** One second of the run. Latencies in ms, of the operations that were answered in it. Absent if there were none. */
interface Second {
  readonly done: number;
  readonly unknown: number;
  readonly refused: number;
  readonly p50?: number;
  readonly p99?: number;
  readonly max?: number;
}

/** A time without an acknowledged write, although clients sent requests all the time. */
export interface Outage {
  readonly fromMs: number;
  readonly ms: number;
}

export interface FigureData {
  readonly operations: number;
  readonly byOutcome: Readonly<Record<How, number>>;
  readonly byWorkload: Readonly<Record<string, number>>;
  /** Why operations were refused or had an unknown outcome. */
  readonly byCode: Readonly<Record<string, number>>;
  readonly seconds: readonly Second[];
  /** The longest ones first. */
  readonly outages: readonly Outage[];
}

const NS_PER_S = 1e9;
const NS_PER_MS = 1e6;
/** Shorter ones are not reported. */
const OUTAGE_MS_MIN = 300;

interface Counting {
  readonly counts: Record<How, number>;
  readonly latenciesMs: number[];
}

export class Figures {
  readonly #seconds: Counting[] = [];
  readonly #byWorkload = new Map<string, number>();
  readonly #byCode = new Map<string, number>();
  readonly #writesNs: number[] = [];
  readonly #counts: Record<How, number> = { done: 0, unknown: 0, refused: 0 };

  get counts(): Readonly<Record<How, number>> {
    return this.#counts;
  }

  take({ w, q, t0, t1, how, code }: Operation): void {
    const second = this.#second(t1 ?? t0);
    second.counts[how] += 1;
    this.#counts[how] += 1;
    increase(this.#byWorkload, w);
    if (code !== undefined) increase(this.#byCode, `${how}: ${code}`);
    if (t1 === null || how !== 'done') return;
    if (w === 'registers' || w === 'txns') second.latenciesMs.push((t1 - t0) / NS_PER_MS);
    if (isWrite(q)) this.#writesNs.push(t1);
  }

  /** `upToNs`: the end of the load. */
  result(upToNs: number): FigureData {
    const { done, unknown, refused } = this.#counts;
    return {
      operations: done + unknown + refused,
      byOutcome: this.#counts,
      byWorkload: Object.fromEntries(this.#byWorkload),
      byCode: Object.fromEntries([...this.#byCode].sort(([, a], [, b]) => b - a)),
      seconds: Array.from(this.#seconds, (second) => secondOf(second ?? newCounting())),
      outages: this.#outages(upToNs),
    };
  }

  #outages(upToNs: number): readonly Outage[] {
    const found: Outage[] = [];
    const writesNs = this.#writesNs.sort((a, b) => a - b);
    // Before the first write, clients are still being started.
    let beforeNs = writesNs[0] ?? 0;
    for (const atNs of [...writesNs, upToNs]) {
      const ms = (atNs - beforeNs) / NS_PER_MS;
      if (ms >= OUTAGE_MS_MIN) found.push({ fromMs: Math.round(beforeNs / NS_PER_MS), ms: Math.round(ms) });
      beforeNs = atNs;
    }
    return found.sort((a, b) => b.ms - a.ms);
  }

  #second(atNs: number): Counting {
    const i = Math.floor(atNs / NS_PER_S);
    let second = this.#seconds[i];
    if (second === undefined) {
      second = newCounting();
      this.#seconds[i] = second;
    }
    return second;
  }
}

function newCounting(): Counting {
  return { counts: { done: 0, unknown: 0, refused: 0 }, latenciesMs: [] };
}

function secondOf({ counts, latenciesMs }: Counting): Second {
  if (latenciesMs.length === 0) return { ...counts };
  const sorted = latenciesMs.sort((a, b) => a - b);
  return { ...counts, p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99), max: quantile(sorted, 1) };
}

function isWrite(q: object): boolean {
  return 'op' in q && ['put', 'del', 'cas', 'append'].includes(String(q.op)) && !('key' in q);
}

function increase(counts: Map<string, number>, name: string): void {
  counts.set(name, (counts.get(name) ?? 0) + 1);
}
