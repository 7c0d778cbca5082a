/**
 * A cluster under full load of everything that clients do, while the memory of its processes is looked at.
 *
 * S1. What counts is memory after a forced collection, and at rest: under load, what is in flight and what is
 *     remembered for a while go up and down with the speed of the machine.
 * S2. The first rest is after the warm-up; each process is compared with itself then.
 */
import type { Child } from '../bench/child.ts';
import { eventually, pause } from '../e2e/eventually.ts';
import { type Cluster, withCluster } from '../e2e/harness.ts';
import { startLoad } from './load-process.ts';
import { type Memory, PROBE_ARGUMENTS } from './memory.ts';
import type { MixedLoadSpec } from './mixed-load.ts';

export interface SoakOptions {
  readonly minutes: number;
  readonly warmUpMinutes: number;
  /** Of measurements under load. */
  readonly everySeconds: number;
  /** Of rests. */
  readonly restEveryMinutes: number;
  readonly seed: number;
  /** Where heap snapshots of the nodes go, of the first rest and of the last. */
  readonly snapshotDir?: string;
  readonly onSample?: (sample: Sample) => void;
}

export interface Sample {
  /** Since the load began. */
  readonly minutes: number;
  readonly resting: boolean;
  /** Operations so far. */
  readonly operations: number;
  /** By process: n1, n2, n3 and `clients`. */
  readonly memory: Readonly<Record<string, Memory>>;
  /** The most that a node remembers for applied-once. */
  readonly outcomes: number;
}

export interface SoakReport {
  readonly samples: readonly Sample[];
  /** Operations that succeeded, by kind, and errors, by code. */
  readonly done: Readonly<Record<string, number>>;
  readonly codes: Readonly<Record<string, number>>;
}

/** Older versions and changes in memory are gone soon: what a run of hours meets comes up in minutes. */
const FLAGS = { 'compaction-retention': '20s', 'checkpoint-interval': '10s' };
/** At rest so few outcomes are left that they do not count. */
const OUTCOMES_AT_REST = 1_000;
const REST_TIMEOUT_MS = 90_000;
/** Checkpoint and compaction once more, of what the load left. */
const SETTLE_MS = 35_000;
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
  readonly #beganMs = performance.now();
  readonly #samples: Sample[] = [];

  constructor(cluster: Cluster, load: Child, options: SoakOptions) {
    this.#cluster = cluster;
    this.#load = load;
    this.#options = options;
  }

  async run(): Promise<SoakReport> {
    const { warmUpMinutes, minutes, restEveryMinutes } = this.#options;
    await this.#workUntil(warmUpMinutes);
    await this.#rest('first');
    for (let next = warmUpMinutes + restEveryMinutes; next < minutes; next += restEveryMinutes) {
      await this.#workUntil(next);
      await this.#rest(undefined);
    }
    await this.#workUntil(minutes);
    await this.#rest('last');
    const { done, codes } = await this.#count();
    return { samples: this.#samples, done, codes };
  }

  get #minutes(): number {
    return (performance.now() - this.#beganMs) / MINUTE_MS;
  }

  async #workUntil(minutes: number): Promise<void> {
    const everyMs = this.#options.everySeconds * 1_000;
    for (;;) {
      const leftMs = (minutes - this.#minutes) * MINUTE_MS;
      if (leftMs <= 0) return;
      await pause(Math.min(leftMs, everyMs));
      if (leftMs >= everyMs) await this.#sample(false);
    }
  }

  async #rest(snapshot: string | undefined): Promise<void> {
    this.#load.send({ type: 'rest' });
    await this.#load.message('resting');
    await pause(SETTLE_MS);
    await eventually('outcomes are forgotten at rest', async () => (await this.#outcomes()) < OUTCOMES_AT_REST, {
      timeoutMs: REST_TIMEOUT_MS,
      pollMs: 500,
    });
    await this.#sample(true);
    if (snapshot !== undefined) await this.#snapshots(snapshot);
    this.#load.send({ type: 'work' });
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
