/** Two nodes with a network between them on a virtual clock, for tests of snapshot transfers. */
import { assert, nodeClock, SeededRandom } from '@remora/base';
import { ManualClock } from '@remora/base/testing';
import type { SnapshotHeader, SnapshotReceiver, Transport } from '../../../src/multi/ports.ts';
import type { SnapshotTransferOptions } from '../../../src/multi/transport/snapshot-transfer.ts';
import { LocalNetwork } from '../../../src/testing/local-network.ts';
import { Recorder, SNAPSHOT_HEADER } from './transport-contract.ts';

const turns = nodeClock();

/** Takes snapshots as slowly as it is told, and checks that its calls never overlap. */
export class PacedReceiver extends Recorder {
  readonly #bed: SnapshotBed;
  /** Virtual time that a call takes, drawn anew for each. */
  delayMs: () => number = () => 0;
  finishes = 0;
  #busy = false;

  constructor(bed: SnapshotBed) {
    super();
    this.#bed = bed;
  }

  override async onSnapshot(from: number, header: SnapshotHeader): Promise<SnapshotReceiver> {
    const inner = await super.onSnapshot(from, header);
    const alone = async (work: () => Promise<void>) => {
      assert(!this.#busy, 'calls of one receiver do not overlap');
      this.#busy = true;
      const delayMs = this.delayMs();
      if (delayMs > 0) await new Promise<void>((resolve) => this.#bed.clock.setTimer(delayMs, resolve));
      await work();
      this.#busy = false;
    };
    return {
      chunk: (bytes) => alone(() => inner.chunk(bytes)),
      finish: () => {
        this.finishes++;
        return alone(() => inner.finish());
      },
      abort: (reason) => inner.abort(reason),
    };
  }
}

export class SnapshotBed {
  readonly clock = new ManualClock();
  readonly network: LocalNetwork;
  readonly sender: Transport;
  readonly receiver: PacedReceiver;
  receiving: Transport;

  constructor(seed: number, options: Partial<SnapshotTransferOptions> = {}) {
    const { clock } = this;
    this.network = new LocalNetwork({
      clock,
      random: new SeededRandom(seed),
      faults: { delayMs: 1 },
      snapshots: { resumeMs: 1_000, chunkBytes: 64, ...options },
    });
    this.sender = this.network.transport(1);
    this.sender.start(new Recorder());
    this.receiver = new PacedReceiver(this);
    this.receiving = this.network.transport(2);
    this.receiving.start(this.receiver);
  }

  /** The receiving node starts again, and knows nothing of before. */
  async restartReceiver(): Promise<void> {
    await this.receiving.stop();
    this.receiving = this.network.transport(2);
    this.receiving.start(this.receiver);
  }

  /** Begins a transfer. `outcome` is undefined while it is under way. */
  send(chunks: AsyncIterable<Uint8Array>, signal: AbortSignal = new AbortController().signal): Sending {
    const sending: Sending = { outcome: undefined, resumed: 0 };
    this.sender
      .sendSnapshot(2, SNAPSHOT_HEADER, chunks, signal, () => {
        sending.resumed++;
      })
      .then(
        () => {
          sending.outcome = 'installed';
        },
        (error: unknown) => {
          sending.outcome = error instanceof Error ? error : new Error(String(error));
        },
      );
    return sending;
  }

  /** Lets virtual time pass until `met`, at most `withinMs`. */
  async until(what: string, met: () => boolean, withinMs = 60_000): Promise<void> {
    const deadline = this.clock.monotonicMs() + withinMs;
    while (!met()) {
      assert(this.clock.monotonicMs() < deadline, `not in ${withinMs} ms: ${what}`);
      await this.run(1);
    }
  }

  async run(ms: number): Promise<void> {
    for (let left = ms; left > 0; left--) {
      this.clock.advance(1);
      await new Promise<void>((resolve) => turns.setImmediate(resolve));
      this.clock.runImmediates();
    }
  }
}

export interface Sending {
  outcome: 'installed' | Error | undefined;
  resumed: number;
}

/** Chunk `n` of a test's snapshot: recognisable, and of varying length. */
function testChunk(n: number): Buffer {
  return Buffer.from(`${n}:${'x'.repeat(n % 7)}`);
}

/** A source of `count` chunks; `pulled` counts what was taken from it. */
export function testSource(count: number): { readonly chunks: AsyncIterable<Uint8Array>; pulled: number } {
  const source = { chunks: generate(), pulled: 0 };
  async function* generate(): AsyncIterable<Uint8Array> {
    for (let n = 0; n < count; n++) {
      source.pulled++;
      yield testChunk(n);
    }
  }
  return source;
}

export function testChunks(count: number): Buffer[] {
  return Array.from({ length: count }, (_, n) => testChunk(n));
}
