/**
 * The store under a simulated node's engine: rows that outlive a process, with the delays of a disk.
 *
 * B1. A batch reaches the medium as a whole or not at all; its writer is notified later. A crash in between leaves
 *     either outcome.
 * B2. While the disk is stalled nothing is read or written; nothing is done for a process that has ended.
 */
import { asBuffer, type Bytes, type Clock, type Random, type Row, sleep } from '@remora/base';
import type {
  PersistentStore,
  StoreBatch,
  StoreCursor,
  StoreRange,
  StoreSnapshot,
} from '../../../../packages/dataserver/src/engine/store.ts';
import { type MemoryMedium, MemoryStore } from '../../../../packages/dataserver/src/testing/memory-store.ts';
import type { DiskStall } from '../../common/env/process-disk.ts';
import type { StoreDamage } from './store-damage.ts';

export interface SimStoreDeps {
  readonly medium: MemoryMedium;
  readonly clock: Clock;
  readonly random: Random;
  readonly stall: DiskStall;
  /** Longest time of a read or a write. */
  readonly latencyMs: () => number;
  /** Whether the next write fails. */
  readonly takeFailure: () => Error | undefined;
  /** The flipped bit in a row, if there is one. */
  readonly damage: () => StoreDamage | undefined;
}

export class SimStore implements PersistentStore {
  readonly #deps: SimStoreDeps;
  readonly #inner: MemoryStore;

  constructor(deps: SimStoreDeps) {
    this.#deps = deps;
    this.#inner = new MemoryStore(deps.medium);
  }

  /** The process has ended. */
  end(): void {
    this.#inner.crash();
  }

  get(key: Bytes): Bytes | undefined {
    return this.#asRead(this.#inner.get(key));
  }

  cursor(range: StoreRange): StoreCursor {
    return this.#slowly(this.#inner.cursor(range));
  }

  snapshot(): StoreSnapshot {
    const inner = this.#inner.snapshot();
    return {
      get: (key) => this.#asRead(inner.get(key)),
      cursor: (range) => this.#slowly(inner.cursor(range)),
      release: () => inner.release(),
    };
  }

  batch(): StoreBatch {
    const inner = this.#inner.batch();
    return {
      put: (key, value) => inner.put(key, value),
      delete: (key) => inner.delete(key),
      write: async () => {
        const failure = this.#deps.takeFailure();
        await this.#pass();
        if (failure !== undefined) throw failure;
        await inner.write();
        await this.#pass(); // B1
      },
    };
  }

  close(): Promise<void> {
    return this.#inner.close();
  }

  #slowly(inner: StoreCursor): StoreCursor {
    return {
      next: async (rowsMax) => {
        await this.#pass();
        const rows = await inner.next(rowsMax);
        return rows.map(({ key, value }): Row => ({ key, value: this.#damaged(value) }));
      },
      close: () => inner.close(),
    };
  }

  #asRead(value: Bytes | undefined): Bytes | undefined {
    return value === undefined ? undefined : asBuffer(this.#damaged(value));
  }

  #damaged(value: Bytes): Bytes {
    return this.#deps.damage()?.read(value) ?? value;
  }

  async #pass(): Promise<void> {
    const { clock, random, stall, latencyMs } = this.#deps;
    await sleep(clock, random.int(Math.floor(latencyMs() * 1000) + 1) / 1000);
    if (stall.stalled) await new Promise<void>((resolve) => stall.run(resolve)); // B2
  }
}
