/**
 * A cluster of real nodes grows: values are loaded through the SDK in the random order of their keys, while the cluster
 * splits its ranges automatically. Then all values are read back and compared. The cluster may shrink again: everything
 * is deleted, and, after settings reduce the required quiet time, the cluster merges its ranges automatically.
 *
 * G1. Keys and values are computed from numbers (`keyOf`, `textOf`), so nothing is kept in memory for the comparison.
 *     If all pairs that are read back are in order, different, and correct for their number, and if their count is
 *     right, they are what was written.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect, type RemoraClient } from 'remora';
import { RemoraCommand } from '../e2e/command.ts';
import { eventually } from '../e2e/eventually.ts';
import { type Cluster, withCluster } from '../e2e/harness.ts';
import { mib, restBytesMax } from './growth-verdict.ts';

export interface GrowthOptions {
  readonly values: number;
  readonly valueBytes: number;
  /** Sizes of ranges, in bytes. */
  readonly sizes: { readonly check: number; readonly split: number; readonly max: number };
  readonly inflight: number;
  /** Whether the cluster shrinks again. */
  readonly shrinks?: boolean;
  readonly say?: (line: string) => void;
}

export interface GrowthReport {
  readonly options: Pick<GrowthOptions, 'values' | 'valueBytes' | 'sizes'>;
  /** Ranges with plain keys at the end. Then the smallest number that their sizes require. */
  readonly ranges: number;
  /** The largest range that was seen, then the largest one at the end, by the bytes of its keys and values. */
  readonly largestBytes: number;
  readonly largestAtEndBytes: number;
  readonly seconds: number;
  readonly writesPerSecond: number;
  /** The longest wait for the answer of a write. */
  readonly longestWriteMs: number;
  readonly failedWrites: readonly string[];
  /** The largest private resident memory of a node at any time. */
  readonly memoryBytes: number;
  /** The same for pages of mapped files: LevelDB's tables, which the kernel reclaims when it needs memory. */
  readonly mappedBytes: number;
  /** Differences between what was read back and what was written. */
  readonly wrong: readonly string[];
  readonly read: number;
  /** Gaps and overlaps between ranges at the end. */
  readonly gaps: readonly string[];
  /** The number of ranges after shrinking. Undefined if the cluster does not shrink. */
  readonly rangesLeft: number | undefined;
}

interface RangeSeen {
  readonly id: number;
  readonly start: string;
  readonly end: string;
  readonly bytes: number;
}

/** As in `remora admin ranges --json`. Borders are text or bytes, the same on both sides. */
interface RangeJson {
  readonly id: number;
  readonly start: unknown;
  readonly end: unknown;
  /** Absent if the range's leader did not answer. */
  readonly state: { readonly bytes: number; readonly keys: number } | null;
}

const PREFIX = 'grown/';
const LOOK_EVERY_MS = 2_000;
const WRONG_MAX = 5;
const WRITE_TIMEOUT = '30s';

/** Hashes a number, so that its position is random. No two hashes are equal. */
function keyOf(i: number): string {
  return `${PREFIX}${hashOf(i).toString('hex', 0, 8)}/${i}`;
}

function textOf(i: number, bytes: number): Buffer {
  const value = Buffer.alloc(bytes);
  const hash = hashOf(i);
  for (let at = 0; at < bytes; at += hash.length) hash.copy(value, at);
  return value;
}

function hashOf(i: number): Buffer {
  return createHash('sha1').update(String(i)).digest();
}

export async function runGrowth(options: GrowthOptions): Promise<GrowthReport> {
  const { check, split, max } = options.sizes;
  const flags = {
    'split-check-size': String(check),
    'split-size': String(split),
    'range-size-max': String(max),
    'split-requests-per-second': '0',
    'split-bytes-per-second': '0',
  };
  return withCluster({ flags }, async (cluster) => {
    await using client = await connect({ endpoints: cluster.endpoints });
    const command = new RemoraCommand(() => cluster.endpoints);
    const watch = new Watch(cluster, command, options);
    const begunMs = performance.now();
    const load = await loadAll(client, options);
    const seconds = (performance.now() - begunMs) / 1_000;
    await eventually('every range is small enough', () => watch.isSettled(), { timeoutMs: 120_000, pollMs: 500 });
    const ranges = await watch.stop();
    options.say?.(`${ranges.length} ranges; reading all of it back`);
    const { read, wrong } = await readBack(client, options);
    const rangesLeft = options.shrinks ? await shrink(client, { command, options }) : undefined;
    return {
      options: { values: options.values, valueBytes: options.valueBytes, sizes: options.sizes },
      ranges: ranges.length,
      largestBytes: watch.largestBytes,
      largestAtEndBytes: Math.max(...ranges.map(({ bytes }) => bytes)),
      seconds,
      writesPerSecond: options.values / seconds,
      ...load,
      memoryBytes: watch.memoryBytes,
      mappedBytes: watch.mappedBytes,
      ...{ read, wrong, gaps: gapsOf(ranges), rangesLeft },
    };
  });
}

async function loadAll(
  client: RemoraClient,
  { values, valueBytes, inflight }: GrowthOptions,
): Promise<Pick<GrowthReport, 'longestWriteMs' | 'failedWrites'>> {
  let longestWriteMs = 0;
  const failedWrites: string[] = [];
  await inParallel({ count: values, inflight }, async (i) => {
    const begunMs = performance.now();
    try {
      await client.kv.put(keyOf(i), textOf(i, valueBytes), { timeout: WRITE_TIMEOUT });
    } catch (error) {
      failedWrites.push(`${keyOf(i)}: ${error}`);
    }
    longestWriteMs = Math.max(longestWriteMs, performance.now() - begunMs);
  });
  return { longestWriteMs, failedWrites: failedWrites.slice(0, WRONG_MAX) };
}

async function inParallel(
  { count, inflight }: { readonly count: number; readonly inflight: number },
  work: (i: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await work(next++);
  };
  await Promise.all(Array.from({ length: inflight }, worker));
}

/** Returns the number of ranges once no more ranges merge. */
async function shrink(
  client: RemoraClient,
  { command, options }: { readonly command: RemoraCommand; readonly options: GrowthOptions },
): Promise<number> {
  options.say?.('deleting all of it');
  const { values, inflight } = options;
  await inParallel({ count: values, inflight }, (i) => client.kv.delete(keyOf(i), { timeout: WRITE_TIMEOUT }));
  const run = async (...args: string[]): Promise<string> => {
    const { code, out, err } = await command.begin(args).ended;
    if (code !== 0) throw new Error(`remora ${args.join(' ')}: ${err}`);
    return out;
  };
  await run('admin', 'compact', '--yes');
  await run('admin', 'settings', 'set', 'merge-quiet-time', '1s');
  let left = Number.POSITIVE_INFINITY;
  const isOne = async (): Promise<boolean> => {
    const { ranges } = JSON.parse(await run('admin', 'ranges', '--json')) as { readonly ranges: readonly RangeJson[] };
    left = ranges.length;
    const keys = ranges.reduce((sum, { state }) => sum + (state?.keys ?? 0), 0);
    options.say?.(`${left} ranges are left, with ${keys} keys by their own count`);
    return left === 1 && keys === 0;
  };
  await eventually('all ranges are merged, and know that they are empty', isOne, { timeoutMs: 120_000, pollMs: 500 });
  await client.kv.put(keyOf(0), textOf(0, 8));
  return left;
}

/** G1. */
async function readBack(
  client: RemoraClient,
  { values, valueBytes }: GrowthOptions,
): Promise<Pick<GrowthReport, 'read' | 'wrong'>> {
  const wrong: string[] = [];
  let read = 0;
  let last = '';
  for await (const { key, value } of client.kv.list({ prefix: PREFIX })) {
    const text = key.toString();
    const i = Number(text.slice(text.lastIndexOf('/') + 1));
    read++;
    if (text <= last) wrong.push(`${text} comes behind ${last}`);
    else if (!(i < values) || keyOf(i) !== text) wrong.push(`${text} was never written`);
    else if (!value.equals(textOf(i, valueBytes))) wrong.push(`${text} has another value`);
    last = text;
  }
  if (read !== values) wrong.push(`${read} keys instead of ${values}`);
  return { read, wrong: wrong.slice(0, WRONG_MAX) };
}

/** Observes the sizes of ranges and nodes, from the beginning to the end. */
class Watch {
  readonly #cluster: Cluster;
  readonly #command: RemoraCommand;
  readonly #options: GrowthOptions;
  readonly #timer: NodeJS.Timeout;
  #looking: Promise<readonly RangeSeen[]> = Promise.resolve([]);
  largestBytes = 0;
  memoryBytes = 0;
  mappedBytes = 0;

  constructor(cluster: Cluster, command: RemoraCommand, options: GrowthOptions) {
    this.#cluster = cluster;
    this.#command = command;
    this.#options = options;
    let busy = false;
    this.#timer = setInterval(() => {
      if (busy) return;
      busy = true;
      void this.#look().finally(() => {
        busy = false;
      });
    }, LOOK_EVERY_MS);
  }

  /** Whether there is nothing left to split. */
  async isSettled(): Promise<boolean> {
    const ranges = await this.#look();
    return (
      ranges.length > 0 &&
      gapsOf(ranges).length === 0 &&
      ranges.every(({ bytes }) => bytes < restBytesMax(this.#options.sizes))
    );
  }

  async stop(): Promise<readonly RangeSeen[]> {
    clearInterval(this.#timer);
    await this.#looking;
    return this.#look();
  }

  #look(): Promise<readonly RangeSeen[]> {
    this.#looking = this.#seen();
    return this.#looking;
  }

  async #seen(): Promise<readonly RangeSeen[]> {
    for (const { pid, running } of this.#cluster.nodes) {
      if (!running) continue;
      this.memoryBytes = Math.max(this.memoryBytes, residentBytes(pid, 'RssAnon'));
      this.mappedBytes = Math.max(this.mappedBytes, residentBytes(pid, 'RssFile'));
    }
    const { code, out } = await this.#command.begin(['admin', 'ranges', '--json']).ended;
    if (code !== 0) return [];
    const { ranges } = JSON.parse(out) as { readonly ranges: readonly RangeJson[] };
    const seen = ranges.map(({ id, start, end, state }) => ({
      ...{ id, bytes: state?.bytes ?? Number.POSITIVE_INFINITY },
      ...{ start: JSON.stringify(start), end: JSON.stringify(end) },
    }));
    const largestBytes = Math.max(...seen.map(({ bytes }) => bytes).filter(Number.isFinite));
    this.largestBytes = Math.max(this.largestBytes, largestBytes);
    this.#options.say?.(`${seen.length} ranges, the largest of ${mib(largestBytes)} MiB`);
    return seen;
  }
}

function residentBytes(pid: number, which: 'RssAnon' | 'RssFile'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'latin1');
  const [, kib = '0'] = new RegExp(`^${which}:\\s+(\\d+) kB$`, 'm').exec(status) ?? [];
  return Number(kib) * 1024;
}

/** Where a range does not begin at the end of the previous one, in key order. */
function gapsOf(ranges: readonly RangeSeen[]): readonly string[] {
  return ranges.flatMap(({ id, start }, i) => {
    const end = ranges[i - 1]?.end ?? start;
    return start === end ? [] : [`range ${id} begins at ${start}, the one before ends at ${end}`];
  });
}
