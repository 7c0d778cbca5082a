/** One process of the simulated cluster: its clock, its log, its disks, and an engine whose scans take time. */
import {
  type Clock,
  type EngineView,
  type Rebuild,
  type Row,
  type ScanOptions,
  type SeededRandom,
  silentLogger,
  sleep,
} from '@remora/base';
import { type ManualClock, SimDisk } from '@remora/base/testing';
import { RESIDENT_SPANS, type Store } from '@remora/dataserver';
import { MemoryEngine } from '@remora/dataserver/testing';
import type { RangeBackend } from '@remora/gateway';
import type { ClosableDialer, createRpcRegistry } from '@remora/protocol';
import type { NodeRaftHost } from '@remora/raft';
import { BedLog } from '../../../packages/raft/test/support/host/held-log.ts';
import { ProcessClock } from './node-clock.ts';

/** What a node gets from its cluster. */
export interface NodeWorld {
  readonly clock: ManualClock;
  readonly random: SeededRandom;
  /** For features that were added later, so that the draws of earlier runs stay the same. */
  readonly laterRandom: SeededRandom;
  readonly failures: unknown[];
}

/** What runs in a node while it lives. */
export interface Running {
  readonly host: NodeRaftHost | undefined;
  readonly store: Store | undefined;
  readonly dialer: ClosableDialer;
  readonly backend: RangeBackend;
  readonly registry: ReturnType<typeof createRpcRegistry>;
}

/** An engine whose scans take time, like a disk's: much happens between the beginning and the end of a scan. */
class SlowEngine extends MemoryEngine {
  /** A snapshot installation is in progress. */
  rebuilding = false;
  readonly #random: SeededRandom;
  readonly #clock: Clock;

  constructor(random: SeededRandom, deps: ConstructorParameters<typeof MemoryEngine>[0]) {
    super(deps);
    this.#random = random;
    this.#clock = deps.clock;
  }

  override view(): EngineView {
    const inner = super.view();
    const slowly = (options: ScanOptions) => this.#scan(inner, options);
    return { get: (key) => inner.get(key), scan: slowly, release: () => inner.release() };
  }

  override rebuild(plan: Rebuild): Promise<void> {
    return super.rebuild({ ...plan, rows: this.#slowly(plan.rows) });
  }

  /** Slow enough that a crash sometimes happens during the scan. */
  async *#slowly(pages: AsyncIterable<readonly Row[]>): AsyncGenerator<readonly Row[]> {
    this.rebuilding = true;
    for await (const rows of pages) {
      await sleep(this.#clock, this.#random.int(100));
      yield rows;
    }
    await sleep(this.#clock, this.#random.int(100));
    this.rebuilding = false;
  }

  async *#scan(inner: EngineView, options: ScanOptions): AsyncGenerator<readonly Row[]> {
    for await (const rows of inner.scan(options)) {
      await sleep(this.#clock, this.#random.int(15));
      yield rows;
    }
  }
}

export class SimNode {
  readonly id: number;
  readonly clock: ProcessClock;
  readonly engine: SlowEngine;
  readonly log: BedLog;
  /** Where snapshots are staged. */
  readonly disk: SimDisk;
  /** Lives so far. Requests to an earlier life are never answered. */
  life = 0;
  /** The number of pauses. Requests through a paused node may be late. */
  pauses = 0;
  running: Running | undefined;

  constructor(world: NodeWorld, id: number) {
    this.id = id;
    this.clock = new ProcessClock(world.clock, { monotonicMs: id * 1_000_000, wallMs: (id - 2) * 3_600_000 });
    // The log only sets timers. Its syncs belong to the process, and end with it.
    this.log = new BedLog(this.clock as unknown as ManualClock);
    this.disk = new SimDisk({ random: world.laterRandom, clock: this.clock, latencyMs: 2 });
    this.engine = new SlowEngine(world.random, {
      options: { resident: RESIDENT_SPANS },
      clock: this.clock,
      logger: silentLogger,
      logDurable: () => this.running?.host?.logDurable() ?? Promise.resolve(),
      onFailure: (error) => world.failures.push(error),
    });
  }
}
