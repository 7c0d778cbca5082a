/**
 * Measures the size of a range, and finds its middle.
 *
 * ME1. The range is read from one view, a bounded batch at a time, with pauses for other work.
 * ME2. Memory is bounded: samples are kept instead of rows. Each sample stands for the rows from its place up to the
 *      next one; when there are too many, pairs are joined.
 * ME3. Places are borders (bounds.ts B2): a lock or a lease counts where it begins, older versions where their key is.
 */
import { type Bytes, type Clock, compareBytes, type Engine, type EngineView, type Span, sleep } from '@remora/base';
import { lockStart } from '@remora/lock';
import { KV_SPACE, kvRoutingKey, LEASE_SPACE } from '@remora/protocol';
import type { LiveKeys, SplitPlace } from '../../splitting/split-wish.ts';
import { boundsOf, intersection } from '../../state/bounds.ts';
import { HISTORY_SPACE, LEASE_KEY_BYTES, parseHistoryKey } from '../../state/keys.ts';
import { valueOfRow } from '../../state/kv/record.ts';

export interface SizeSample {
  /** The bytes of all rows, including older versions. */
  readonly bytes: number;
  readonly live: LiveKeys;
  /** Where to cut so that about half lies on either side, and what lies behind; undefined if there is no such place. */
  readonly middle: SplitPlace | undefined;
}

interface Sample {
  readonly at: Bytes;
  bytes: number;
  keys: number;
  liveBytes: number;
}

/** The rows of plain keys. */
const PLAIN: Span = { start: Buffer.from([KV_SPACE]), end: Buffer.from([KV_SPACE + 1]) };
const SAMPLES_MAX = 1_024;
const SAMPLE_BYTES_MIN = 4_096;
const PAUSE_MS = 1;

/** Measures the keys of a span; undefined if `stopped` became true. */
export async function sampleSize(
  engine: Engine,
  span: Span,
  { clock, stopped }: { readonly clock: Clock; readonly stopped: () => boolean },
): Promise<SizeSample | undefined> {
  const { routed, history } = boundsOf(span);
  const view = engine.view();
  try {
    const lists: Sample[][] = [];
    for (const part of history === undefined ? [routed] : [routed, history]) {
      lists.push(await samplesOf(view, part, clock, stopped));
      if (stopped()) return undefined;
    }
    return weigh(lists.flat().sort((a, b) => compareBytes(a.at, b.at)));
  } finally {
    view.release();
  }
}

/** Counts the plain keys of a span at the moment of the call; undefined if `stopped` became true. */
export async function countLive(
  engine: Engine,
  span: Span,
  { clock, stopped }: { readonly clock: Clock; readonly stopped: () => boolean },
): Promise<LiveKeys | undefined> {
  const plain = intersection(boundsOf(span).routed, PLAIN);
  if (plain === undefined) return { keys: 0, bytes: 0 };
  const view = engine.view();
  let [keys, bytes] = [0, 0];
  try {
    for await (const rows of view.scan(plain)) {
      keys += rows.length;
      for (const { key, value } of rows) bytes += liveBytes(key, value);
      if (stopped()) return undefined;
      await sleep(clock, PAUSE_MS); // ME1
    }
    return { keys, bytes };
  } finally {
    view.release();
  }
}

/** Whether the rows of a span have more than this many bytes; reads hardly more than that. */
export async function hasMoreThan(
  engine: Engine,
  span: Span,
  { bytes, clock, stopped }: { readonly bytes: number; readonly clock: Clock; readonly stopped: () => boolean },
): Promise<boolean> {
  const { routed, history } = boundsOf(span);
  const view = engine.view();
  let found = 0;
  try {
    for (const part of history === undefined ? [routed] : [routed, history]) {
      for await (const rows of view.scan(part)) {
        for (const { key, value } of rows) found += key.length + value.length;
        if (found > bytes) return true;
        if (stopped()) return false;
        await sleep(clock, PAUSE_MS); // ME1
      }
    }
    return false;
  } finally {
    view.release();
  }
}

async function samplesOf(view: EngineView, span: Span, clock: Clock, stopped: () => boolean): Promise<Sample[]> {
  let samples: Sample[] = [];
  let sampleBytes = SAMPLE_BYTES_MIN;
  let last: Sample | undefined;
  for await (const rows of view.scan(span)) {
    for (const { key, value } of rows) {
      if (last === undefined || last.bytes >= sampleBytes) {
        last = { at: borderAt(key), bytes: 0, keys: 0, liveBytes: 0 };
        samples.push(last);
      }
      last.bytes += key.length + value.length;
      if (key[0] !== KV_SPACE) continue;
      last.keys++;
      last.liveBytes += liveBytes(key, value);
    }
    if (samples.length > SAMPLES_MAX) {
      samples = joined(samples);
      sampleBytes *= 2;
      last = samples.at(-1);
    }
    if (stopped()) break;
    await sleep(clock, PAUSE_MS); // ME1
  }
  return samples;
}

/** The bytes of a plain key's row, as `RangeState` counts them. */
function liveBytes(key: Bytes, row: Bytes): number {
  return key.length - 1 + valueOfRow(row).length;
}

/** ME2. */
function joined(samples: readonly Sample[]): Sample[] {
  const out: Sample[] = [];
  for (const [i, sample] of samples.entries()) {
    const into = out.at(-1);
    if (i % 2 === 0 || into === undefined) out.push({ ...sample });
    else add(into, sample);
  }
  return out;
}

function add(into: Sample, { bytes, keys, liveBytes }: Sample): void {
  into.bytes += bytes;
  into.keys += keys;
  into.liveBytes += liveBytes;
}

/** ME3. */
function borderAt(row: Bytes): Bytes {
  switch (row[0]) {
    case LEASE_SPACE:
      return Buffer.from(row.subarray(0, LEASE_KEY_BYTES));
    case HISTORY_SPACE:
      return kvRoutingKey(parseHistoryKey(row).key);
    default:
      return Buffer.from(lockStart(row) ?? row);
  }
}

/** The samples are in the order of their places. */
function weigh(samples: readonly Sample[]): SizeSample {
  const total: Sample = { at: Buffer.alloc(0), bytes: 0, keys: 0, liveBytes: 0 };
  for (const sample of samples) add(total, sample);
  const before: Sample = { ...total, bytes: 0, keys: 0, liveBytes: 0 };
  let best: Sample | undefined;
  const offMiddle = (bytes: number): number => Math.abs(total.bytes - 2 * bytes);
  for (const [i, sample] of samples.entries()) {
    const [first, previous] = [samples[0], samples[i - 1]];
    // Only rows completely before the place count: two samples may belong to one key, in two key spaces.
    const begins = previous === undefined || compareBytes(previous.at, sample.at) < 0;
    const parts = first !== undefined && compareBytes(first.at, sample.at) < 0;
    if (begins && parts && (best === undefined || offMiddle(before.bytes) < offMiddle(best.bytes))) {
      best = { ...before, at: sample.at };
    }
    add(before, sample);
  }
  const live = { keys: total.keys, bytes: total.liveBytes };
  if (best === undefined) return { bytes: total.bytes, live, middle: undefined };
  const behind = { keys: total.keys - best.keys, bytes: total.liveBytes - best.liveBytes };
  return { bytes: total.bytes, live, middle: { at: best.at, live: behind } };
}
