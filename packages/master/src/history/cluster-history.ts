/**
 * What happened in the cluster in the last hours: load by key, and what each node measured, minute by minute.
 *
 * CH1. It is kept in the memory of the masters' leader, and lost with its term: the next leader begins an empty one.
 * CH2. It has `HISTORY_MINUTES` minutes, each with at most `HEAT_COLUMNS_MAX` columns of its own, so that columns
 *      follow the key space as it changes. All of it takes at most `HISTORY_BYTES_MAX`: the oldest minutes of load are
 *      dropped for newer ones, and nodes beyond `SERIES_NODES_MAX` have no series.
 * CH3. A node counts once for each minute: a report that is repeated because its answer was lost changes nothing.
 * CH4. Minutes are those of the wall clock, so that the reports of all nodes meet in one. A node whose clock is further
 *      off than `OFF_MAX` minutes counts for the minute that is complete here.
 */
import {
  addedHeat,
  coarsened,
  HEAT_COLUMNS_MAX,
  type Heat,
  HISTORY_MINUTES,
  type HistorySpan,
  MINUTE_MS,
  type MinuteReport,
  NO_HEAT,
} from '@remora/protocol';
import { heatOfReport } from './heat-report.ts';
import { NodeSeries } from './node-series.ts';
import { PackedHeat } from './packed-heat.ts';

/** CH2. */
export const HISTORY_BYTES_MAX = 32 * 1024 * 1024;
/** As many as a cluster may have. */
const SERIES_NODES_MAX = 1_000;
/** CH4. */
const OFF_MAX = 2;
/** For how many minutes it is remembered which nodes have reported (CH3). */
const REMEMBERED_MINUTES = 2 * OFF_MAX + 1;

export interface HistoryStats {
  readonly bytes: number;
  readonly minutes: number;
  readonly nodes: number;
}

export class ClusterHistory {
  readonly #bytesMax: number;
  /** By minute. */
  readonly #heat = new Map<number, PackedHeat>();
  #heatBytes = 0;
  readonly #series = new Map<number, NodeSeries>();
  /** By minute: the nodes that have reported it. */
  readonly #reported = new Map<number, Set<number>>();
  #term = 0;
  /** The first minute of which this term may know something. */
  #first: number | undefined;

  /** The limit is smaller in tests. */
  constructor(bytesMax: number = HISTORY_BYTES_MAX) {
    this.#bytesMax = bytesMax;
  }

  get stats(): HistoryStats {
    return { bytes: this.#bytes, minutes: this.#heat.size, nodes: this.#series.size };
  }

  get #bytes(): number {
    return this.#heatBytes + this.#series.size * NodeSeries.bytes;
  }

  /** How many terms have begun: an answer of an earlier one is not true any more. */
  get term(): number {
    return this.#term;
  }

  /** CH1. */
  termBegan(): void {
    this.#term++;
    this.#heat.clear();
    this.#heatBytes = 0;
    this.#series.clear();
    this.#reported.clear();
    this.#first = undefined;
  }

  /** A node reports the last minute. `wallMs`: the time here. */
  reported(nodeId: number, report: MinuteReport, wallMs: number): void {
    const complete = completeMinute(wallMs);
    const isNear = Math.abs(report.minute - complete) <= OFF_MAX;
    const minute = isNear ? report.minute : complete; // CH4
    if (!this.#isNew(nodeId, minute, complete)) return;
    this.#first = Math.min(this.#first ?? minute, minute);
    this.#forget(complete);
    this.#seriesOf(nodeId, minute)?.set(minute, report.rates);
    const heat = heatOfReport(report.heat);
    this.#keep(minute, coarsened(addedHeat(this.#heat.get(minute)?.heat ?? NO_HEAT, heat), HEAT_COLUMNS_MAX));
  }

  /** CH3. */
  #isNew(nodeId: number, minute: number, complete: number): boolean {
    for (const each of this.#reported.keys()) {
      if (Math.abs(each - complete) > REMEMBERED_MINUTES) this.#reported.delete(each);
    }
    const nodes = this.#reported.get(minute) ?? new Set<number>();
    if (nodes.has(nodeId)) return false;
    this.#reported.set(minute, nodes.add(nodeId));
    return true;
  }

  #seriesOf(nodeId: number, minute: number): NodeSeries | undefined {
    const known = this.#series.get(nodeId);
    if (known !== undefined) return minute > known.newest - HISTORY_MINUTES ? known : undefined;
    if (this.#series.size >= SERIES_NODES_MAX) return undefined;
    const made = new NodeSeries(minute);
    this.#series.set(nodeId, made);
    return made;
  }

  #keep(minute: number, heat: Heat): void {
    this.#drop(minute);
    const packed = new PackedHeat(heat);
    this.#heat.set(minute, packed);
    this.#heatBytes += packed.bytes;
    while (this.#bytes > this.#bytesMax && this.#heat.size > 0) this.#drop(Math.min(...this.#heat.keys())); // CH2
  }

  #drop(minute: number): void {
    this.#heatBytes -= this.#heat.get(minute)?.bytes ?? 0;
    this.#heat.delete(minute);
  }

  /** Drops what is older than the history is long, and what lies ahead because the clock was set back. */
  #forget(complete: number): void {
    const isOut = (minute: number): boolean => minute <= complete - HISTORY_MINUTES || minute > complete + OFF_MAX;
    for (const minute of this.#heat.keys()) if (isOut(minute)) this.#drop(minute);
    for (const [nodeId, { newest }] of this.#series) if (isOut(newest)) this.#series.delete(nodeId);
  }

  /** The last minutes up to the last complete one, as far back as anything is known. */
  span(minutes: number, wallMs: number): HistorySpan {
    const last = completeMinute(wallMs);
    const count = Math.max(0, Math.min(minutes, HISTORY_MINUTES, last + 1 - (this.#first ?? last + 1)));
    return { first: last + 1 - count, count };
  }

  /** The nodes that reported in these minutes, in the order of their ids. */
  activity(span: HistorySpan): readonly { readonly nodeId: number; readonly values: Float32Array }[] {
    return [...this.#series]
      .sort(([a], [b]) => a - b)
      .flatMap(([nodeId, series]) => {
        const values = series.read(span);
        return values === undefined ? [] : [{ nodeId, values }];
      });
  }

  /** The load of a minute; undefined: nothing is known of it. */
  heat(minute: number): Heat | undefined {
    return this.#heat.get(minute)?.heat;
  }
}

/** The last minute that has ended. */
function completeMinute(wallMs: number): number {
  return Math.floor(wallMs / MINUTE_MS) - 1;
}
