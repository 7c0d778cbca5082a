/**
 * A cluster under a full load of everything that clients do, while the memory of its processes is measured.
 *
 * S1. Memory counts after a forced garbage collection and at rest: under load, requests in flight and data that is
 *     remembered for a while vary with the speed of the machine.
 * S2. The first rest is after the warm-up, which must fill every cache: the log's tail, recent events, remembered
 *     outcomes. That depends on the number of operations, not on minutes.
 */

import { eventually, pause } from '../e2e/eventually.ts';
import { type Cluster, withCluster } from '../e2e/harness.ts';
import type { Child } from '../support/child.ts';
import { startLoad } from './load-process.ts';
import { type Memory, PROBE_ARGUMENTS } from './memory.ts';
import type { MixedLoadSpec } from './mixed-load.ts';

export interface SoakOptions {
  /** The duration of the load, without rests. */
  readonly minutes: number;
  /** The minimum. At most half of the time is used for the warm-up. */
  readonly warmUpMinutes: number;
  readonly warmUpOperations: number;
  /** The interval of measurements under load. */
  readonly everySeconds: number;
  /** The number of rests. */
  readonly rests: number;
  readonly seed: number;
  /** The folder for heap snapshots of the nodes, from the first rest and the last one. */
  readonly snapshotDir?: string;
  readonly onSample?: (sample: Sample) => void;
}

export interface Sample {
  /** The duration of the load so far. */
  readonly minutes: number;
  readonly resting: boolean;
  /** Operations so far. */
  readonly operations: number;
  /** By process: n1, n2, n3 and `clients`. */
  readonly memory: Readonly<Record<string, Memory>>;
  /** The largest number of outcomes that a node remembers for deduplication. */
  readonly outcomes: number;
}

export interface SoakReport {
  readonly options: Pick<SoakOptions, 'minutes' | 'warmUpOperations'>;
  readonly samples: readonly Sample[];
  /** Operations that succeeded, by kind, and errors, by code. */
  readonly done: Readonly<Record<string, number>>;
  readonly codes: Readonly<Record<string, number>>;
}

/** Older versions and in-memory changes are deleted soon, so that minutes cover what otherwise takes hours. */
const FLAGS = { 'compaction-retention': '20s', 'checkpoint-interval': '10s' };
/** At rest so few outcomes are left that they do not matter. */
const OUTCOMES_AT_REST = 200;
const REST_TIMEOUT_MS = 90_000;
/** For a checkpoint of the load's data. */
const SETTLE_MS = 15_000;
const MINUTE_MS = 60_000;

export async function runSoak(options: SoakOptions): Promise<SoakReport> {
  return withCluster({ flags: FLAGS, nodeArguments: PROBE_ARGUMENTS }, async (cluster) => {
    const spec: MixedLoadSpec = { endpoints: cluster.endpoints, seed: options.seed };
    const load = startLoad('load:mixed', spec, cluster.dir, PROBE_ARGUMENTS);
    try {
      await load.message('working');
      return await new Soak(cluster, load, options).run();
    } finally {
      await load.stop();
    }
  });
}

class Soak {
  readonly #cluster: Cluster;
  readonly #load: Child;
  readonly #options: SoakOptions;
  /** The duration of the load until the last rest, and when it continued. Undefined at rest. */
  #loadMs = 0;
  #loadSinceMs: number | undefined = performance.now();
  readonly #samples: Sample[] = [];

  constructor(cluster: Cluster, load: Child, options: SoakOptions) {
    this.#cluster = cluster;
    this.#load = load;
    this.#options = options;
  }

  async run(): Promise<SoakReport> {
    const { minutes, rests, warmUpOperations } = this.#options;
    await this.#warmUp();
    await this.#rest('first');
    const warmMinutes = this.#minutes;
    for (let rest = 1; rest < rests; rest++) {
      await this.#workUntil(warmMinutes + ((minutes - warmMinutes) * rest) / (rests - 1));
      await this.#rest(rest === rests - 1 ? 'last' : undefined);
    }
    const { done, codes } = await this.#count();
    return { options: { minutes, warmUpOperations }, samples: this.#samples, done, codes };
  }

  get #minutes(): number {
    const sinceMs = this.#loadSinceMs === undefined ? 0 : performance.now() - this.#loadSinceMs;
    return (this.#loadMs + sinceMs) / MINUTE_MS;
  }

  /** S2 */
  async #warmUp(): Promise<void> {
    const { minutes, warmUpMinutes, warmUpOperations } = this.#options;
    await this.#workUntil(warmUpMinutes);
    while (this.#minutes < minutes / 2 && (this.#samples.at(-1)?.operations ?? 0) < warmUpOperations) {
      await this.#workUntil(Math.min(minutes / 2, this.#minutes + this.#options.everySeconds / 60));
    }
  }

  async #workUntil(minutes: number): Promise<void> {
    const everyMs = this.#options.everySeconds * 1_000;
    for (;;) {
      const leftMs = (minutes - this.#minutes) * MINUTE_MS;
      if (leftMs <= 0) return;
      await pause(Math.min(leftMs, everyMs));
      await this.#sample(false);
    }
  }

  async #rest(snapshot: string | undefined): Promise<void> {
    this.#load.send({ type: 'rest' });
    await this.#load.message('resting');
    this.#loadMs = this.#minutes * MINUTE_MS;
    this.#loadSinceMs = undefined;
    await pause(SETTLE_MS);
    await eventually('outcomes are forgotten at rest', async () => (await this.#outcomes()) < OUTCOMES_AT_REST, {
      timeoutMs: REST_TIMEOUT_MS,
      pollMs: 500,
    });
    await this.#sample(true);
    if (snapshot !== undefined) await this.#snapshots(snapshot);
    this.#load.send({ type: 'work' });
    this.#loadSinceMs = performance.now();
  }

  async #sample(resting: boolean): Promise<void> {
    const memory: Record<string, Memory> = {};
    for (const node of this.#cluster.nodes) memory[node.name] = (await node.ask({ type: 'measure' })) as Memory;
    this.#load.send({ type: 'measure' });
    memory.clients = (await this.#load.message('measured')) as unknown as Memory;
    const { done } = await this.#count();
    const operations = Object.values(done).reduce((sum, count) => sum + count, 0);
    const sample = { minutes: this.#minutes, resting, operations, memory, outcomes: await this.#outcomes() };
    this.#samples.push(sample);
    this.#options.onSample?.(sample);
  }

  async #count(): Promise<Pick<SoakReport, 'done' | 'codes'>> {
    this.#load.send({ type: 'count' });
    return (await this.#load.message('counted')) as unknown as Pick<SoakReport, 'done' | 'codes'>;
  }

  async #outcomes(): Promise<number> {
    const found = await Promise.all(
      this.#cluster.nodes.map((node) => node.metrics('remora_range_remembered_outcomes')),
    );
    return Math.max(0, ...found.flatMap((each) => [...each.values()]));
  }

  async #snapshots(name: string): Promise<void> {
    const { snapshotDir } = this.#options;
    if (snapshotDir === undefined) return;
    for (const node of this.#cluster.nodes) {
      await node.ask({ type: 'snapshot', path: `${snapshotDir}/${node.name}-${name}.heapsnapshot` });
    }
  }
}
