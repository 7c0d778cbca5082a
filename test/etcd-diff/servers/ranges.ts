/** The ranges of the cluster under test: split at set keys before the run, or changed all the time while it goes on. */
import { join } from 'node:path';
import { type Bytes, compareBytes, equalBytes, type Random, SeededRandom } from '@remora/base';
import { kvRoutingKey, LEASE_SPACE } from '@remora/protocol';
import type { admin } from '@remora/protocol/remora';
import { RangeDesk, type WantedChange } from '../../chaos/changes/range-desk.ts';
import { Journal } from '../../chaos/journal/journal.ts';
import { eventually, pause } from '../../e2e/eventually.ts';
import type { Cluster } from '../../e2e/harness.ts';
import { KEY_BORDERS, KEYS, LEASE_BORDER } from '../requests/keys.ts';

export const LAYOUTS = ['eight', 'one', 'changing'] as const;
export type Layout = (typeof LAYOUTS)[number];

const SPLIT_WITHIN_MS = 60_000;
const RANGES_MIN = 3;
const RANGES_MAX = 14;
/** Between two changes, on average half of it. */
const REST_MS_MAX = 300;

export class Ranges {
  readonly #desk: RangeDesk;
  readonly #over = new AbortController();
  #changing: Promise<void> = Promise.resolve();

  private constructor(cluster: Cluster) {
    const journal = new Journal({
      ...{ file: join(cluster.dir, 'ranges.log'), roundMs: Number.MAX_SAFE_INTEGER },
      beganNs: process.hrtime.bigint(),
    });
    this.#desk = new RangeDesk({ endpoints: cluster.endpoints, journal });
  }

  static async lay(cluster: Cluster, layout: Layout, seed: number): Promise<Ranges> {
    const ranges = new Ranges(cluster);
    try {
      if (layout !== 'one') for (const border of BORDERS) await ranges.#split(border);
      if (layout === 'changing') ranges.#beginChanging(new SeededRandom(seed));
      return ranges;
    } catch (error) {
      await ranges.stop();
      throw error;
    }
  }

  /** How many changes came to their end. */
  get changes(): Readonly<Record<string, number>> {
    return this.#desk.done;
  }

  async stop(): Promise<void> {
    this.#over.abort();
    await this.#changing;
    this.#desk.close();
  }

  #beginChanging(random: Random): void {
    this.#changing = this.#keepChanging(random);
  }

  async #split(at: Bytes): Promise<void> {
    await eventually(
      `a range begins at ${Buffer.from(at).toString('hex')}`,
      async () => {
        const all = await this.#desk.ranges();
        if (all.some(({ start }) => equalBytes(start, at))) return true;
        const wanted = splitOf(all, at);
        return wanted !== undefined && (await this.#desk.carryOut(wanted));
      },
      { timeoutMs: SPLIT_WITHIN_MS },
    );
  }

  async #keepChanging(random: Random): Promise<void> {
    while (!this.#over.signal.aborted) {
      const all = await this.#desk.ranges().catch(() => []);
      const wanted = drawChange(all, random);
      if (wanted !== undefined) await this.#desk.carryOut(wanted);
      await pause(random.int(REST_MS_MAX));
    }
  }
}

const BORDERS: readonly Bytes[] = [leaseKey(LEASE_BORDER), ...KEY_BORDERS.map(keyPlace)];

function keyPlace(key: string): Bytes {
  return kvRoutingKey(Buffer.from(key, 'latin1'));
}

function leaseKey(id: bigint): Bytes {
  const key = Buffer.alloc(9, LEASE_SPACE);
  key.writeBigUInt64BE(id, 1);
  return key;
}

function splitOf(all: readonly admin.Range[], at: Bytes): WantedChange | undefined {
  const range = all.findLast(({ start }) => compareBytes(start, at) <= 0);
  if (range === undefined || equalBytes(range.start, at)) return undefined;
  return { kind: 'split', range, how: { $case: 'split', value: { at: Buffer.from(at) } } };
}

/** Undefined: this time nothing. */
function drawChange(all: readonly admin.Range[], random: Random): WantedChange | undefined {
  const at = random.int(all.length === 0 ? 1 : all.length);
  const [range, other] = [all[at], all[at + 1]];
  if (range === undefined) return undefined;
  const kind = random.int(5);
  if (kind === 0) return transferOf(range, random);
  if (all.length <= RANGES_MIN || (kind <= 2 && all.length < RANGES_MAX)) {
    const key = KEYS[random.int(KEYS.length)] ?? '';
    return splitOf(all, random.int(8) === 0 ? leaseKey(LEASE_BORDER) : keyPlace(key));
  }
  if (other === undefined) return undefined;
  return { kind: 'merge', range, other, how: { $case: 'merge', value: { source: BigInt(other.id) } } };
}

function transferOf(range: admin.Range, random: Random): WantedChange | undefined {
  const others = range.replicas.flatMap(({ nodeId }) => (nodeId === range.leaderNode ? [] : [nodeId]));
  const toNode = others[random.int(Math.max(1, others.length))];
  if (toNode === undefined) return undefined;
  return { kind: 'transfer', range, how: { $case: 'transfer', value: { toNode: BigInt(toNode) } } };
}
