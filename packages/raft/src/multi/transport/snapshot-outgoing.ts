/**
 * Sends one snapshot over one stream after another, until the receiver has installed it.
 *
 * O1. One stream at a time. Each names the transfer and its own number, so that the receiver knows the newest.
 * O2. The source is read once, in order, and not before the receiver has accepted: an offer that was refused as `busy`
 *     can be repeated with the same source. Chunks that the receiver has not stored are kept (snapshot-chunks.ts W1).
 * O3. After a stream breaks, another follows after a pause, for at most `resumeMs` without progress. Only before the
 *     receiver has accepted does a break end the transfer. A refusal by the receiver ends it at once.
 * O4. The receiver judges whether storing and installing make progress. The sender gives up only if an answer is
 *     pending and the receiver sends nothing at all for `silenceMs`.
 * O5. A transfer ends once. If it fails while the receiver may hold a part, the sender notifies the receiver if it can
 *     be reached.
 */
import { assert, type Clock, type Random, ServiceError, sleep, unreachable } from '@remora/base';
import type { SnapshotHeader } from '../ports.ts';
import { ChunkWindow, splitChunks } from './snapshot-chunks.ts';
import {
  decodeReceiverMessage,
  encodeSenderMessage,
  type ReceiverMessage,
  TRANSFER_ID_BYTES,
} from './snapshot-messages.ts';
import { reasonOf, type SnapshotTraffic, type SnapshotTransferOptions, snapshotBusy } from './snapshot-transfer.ts';
import { WireError } from './wire-bytes.ts';

/** One stream to the receiver. */
export interface SnapshotLink {
  send(message: Buffer): void;
  /** Ends the stream. `last` is still delivered if the stream allows it. */
  close(last?: Buffer): void;
}

export interface SnapshotLinkEvents {
  message(bytes: Uint8Array): void;
  /** The stream is over. `final`: another one would not help. */
  broken(reason: string, final?: boolean): void;
}

export interface OutgoingContext {
  readonly clock: Clock;
  readonly random: Random;
  readonly options: SnapshotTransferOptions;
  readonly traffic: SnapshotTraffic;
  /** Begins a stream; events come later, never within the call. */
  readonly dial: (events: SnapshotLinkEvents) => SnapshotLink;
}

export interface OutgoingSnapshot {
  readonly header: SnapshotHeader;
  readonly chunks: AsyncIterable<Uint8Array>;
  readonly signal: AbortSignal;
  /** Called for each stream that continues after a break. */
  readonly resumed?: (() => void) | undefined;
}

/** Resolves once the snapshot is installed; rejects with `RESOURCE_EXHAUSTED` if it may be offered again (O2). */
export async function sendOverLinks(context: OutgoingContext, snapshot: OutgoingSnapshot): Promise<void> {
  snapshot.signal.throwIfAborted();
  await new Outgoing(context, snapshot).run();
}

/** The stream broke; O3 decides what follows. */
class LinkBroken extends Error {}

class Outgoing {
  readonly #context: OutgoingContext;
  readonly #snapshot: OutgoingSnapshot;
  readonly #id: string;
  readonly #window: ChunkWindow;
  #source: AsyncIterator<Uint8Array> | undefined;
  /** A chunk from the source that no stream has carried yet; undefined while the source is being read, or was not. */
  #pulled: IteratorResult<Uint8Array> | undefined;
  #pulling = false;
  #link: SnapshotLink | undefined;
  /** Why the current stream is over. */
  #broken: string | undefined;
  #failure: unknown;
  /** The receiver's answer to the opening of the current stream: the next wanted chunk. */
  #wanted: number | undefined;
  #accepted = false;
  #installed = false;
  #heardMs = 0;
  /** When the stream broke, if there was no progress since. */
  #brokenSinceMs: number | undefined;
  #failures = 0;
  #wake: (() => void) | undefined;

  constructor(context: OutgoingContext, snapshot: OutgoingSnapshot) {
    this.#context = context;
    this.#snapshot = snapshot;
    this.#id = context.random.bytes(TRANSFER_ID_BYTES).toString('hex');
    this.#window = new ChunkWindow(context.options.windowChunks);
  }

  async run(): Promise<void> {
    const { signal } = this.#snapshot;
    const onAbort = () => this.#fail(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      await this.#streams();
      this.#link?.close();
    } catch (error) {
      this.#link?.close(encodeSenderMessage({ type: 'abort', reason: reasonOf(error) })); // O5
      throw error;
    } finally {
      signal.removeEventListener('abort', onAbort);
      this.#link = undefined;
      this.#count(() => this.#window.release(this.#window.taken));
      // Not awaited: a source that hangs must not delay the end of the transfer.
      void this.#source?.return?.().catch(() => undefined);
    }
  }

  async #streams(): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#stream(attempt); // O1
      } catch (error) {
        if (!(error instanceof LinkBroken)) throw error;
        this.#link?.close();
        this.#link = undefined;
        this.#judge(error);
      }
      await this.#pause();
    }
  }

  /** O3. Throws if no further stream should be tried. */
  #judge(broken: LinkBroken): void {
    if (!this.#accepted) throw new Error(broken.message);
    const now = this.#context.clock.monotonicMs();
    this.#brokenSinceMs ??= now;
    if (now - this.#brokenSinceMs < this.#context.options.resumeMs) return;
    throw new Error(`the stream broke and could not be resumed in time: ${broken.message}`);
  }

  async #pause(): Promise<void> {
    const { clock, random, options } = this.#context;
    const full = Math.min(options.backoffMaxMs, options.backoffMinMs * 2 ** Math.min(this.#failures++, 16));
    await sleep(clock, full / 2 + random.int(Math.ceil(full / 2) + 1), this.#snapshot.signal);
  }

  async #stream(attempt: number): Promise<void> {
    const link = this.#dial();
    link.send(encodeSenderMessage({ type: 'open', id: this.#id, attempt, header: this.#snapshot.header }));
    await this.#owed(() => this.#wanted !== undefined || this.#installed);
    if (this.#installed) return;
    if (attempt > 1) this.#resumed();
    for (const message of this.#window.from(this.#wanted ?? 0)) this.#sendChunk(link, message);
    for (;;) {
      await this.#owed(() => this.#window.hasRoom || this.#installed);
      const bytes = await this.#pull();
      if (bytes === undefined) break;
      let message: Buffer | undefined;
      this.#count(() => {
        message = this.#window.push(bytes);
      });
      assert(message !== undefined, 'a chunk that was taken is sent');
      this.#sendChunk(link, message);
    }
    link.send(encodeSenderMessage({ type: 'finish', count: this.#window.taken }));
    await this.#owed(() => this.#installed);
  }

  #dial(): SnapshotLink {
    this.#broken = undefined;
    this.#wanted = undefined;
    const link = this.#context.dial({
      message: (bytes) => {
        if (this.#link === link) this.#message(bytes);
      },
      broken: (reason, final = false) => {
        if (this.#link !== link) return;
        if (final) return this.#fail(new Error(reason));
        this.#broken ??= reason;
        this.#wake?.();
      },
    });
    this.#link = link;
    return link;
  }

  #sendChunk(link: SnapshotLink, message: Buffer): void {
    this.#context.traffic.sentBytes += message.length;
    link.send(message);
  }

  #resumed(): void {
    this.#failures = 0;
    this.#context.traffic.resumed++;
    this.#snapshot.resumed?.();
  }

  // ---------------------------------------------------------------------------------------------- source

  /**
   * Returns the next chunk; undefined at the end. If the stream breaks, the pending read of the source serves the next
   * stream.
   */
  async #pull(): Promise<Uint8Array | undefined> {
    const { chunks } = this.#snapshot;
    this.#source ??= splitChunks(chunks, this.#context.options.chunkBytes)[Symbol.asyncIterator](); // O2
    if (this.#pulled === undefined && !this.#pulling) {
      this.#pulling = true;
      this.#source.next().then(
        (result) => {
          this.#pulling = false;
          this.#pulled = result;
          this.#wake?.();
        },
        (error: unknown) => this.#fail(error),
      );
    }
    await this.#until(() => this.#pulled !== undefined);
    const pulled = this.#pulled;
    if (pulled?.done === true) return undefined; // it stays: every stream announces the end
    this.#pulled = undefined;
    return pulled?.value;
  }

  // ---------------------------------------------------------------------------------------------- answers

  #message(bytes: Uint8Array): void {
    this.#heardMs = this.#context.clock.monotonicMs();
    try {
      this.#answer(decodeReceiverMessage(bytes));
    } catch (error) {
      if (!(error instanceof WireError)) throw error;
      this.#fail(error);
    }
    this.#wake?.();
  }

  #answer(message: ReceiverMessage): void {
    switch (message.type) {
      case 'ready':
        this.#accepted = true;
        this.#window.grant(message.window);
        this.#stored(message.stored);
        this.#window.from(message.wanted); // checks that the window holds it
        this.#wanted = message.wanted;
        return;
      case 'stored':
        return this.#stored(message.stored);
      case 'working':
        this.#brokenSinceMs = undefined;
        return;
      case 'installed':
        this.#installed = true;
        return;
      case 'refused':
        return this.#fail(refusalError(message));
      default:
        unreachable(message);
    }
  }

  #stored(count: number): void {
    this.#count(() => {
      if (this.#window.release(count)) this.#brokenSinceMs = undefined;
    });
  }

  /** Updates the count of buffered bytes after a change of the window. */
  #count(change: () => void): void {
    const { traffic } = this.#context;
    const before = this.#window.bytes;
    change();
    traffic.sendBuffered += this.#window.bytes - before;
    traffic.sendBufferedMost = Math.max(traffic.sendBufferedMost, traffic.sendBuffered);
  }

  #fail(reason: unknown): void {
    this.#failure ??= reason ?? new Error('the snapshot was aborted');
    this.#wake?.();
  }

  // ---------------------------------------------------------------------------------------------- waiting

  /** Waits for a pending answer of the receiver (O4). */
  async #owed(met: () => boolean): Promise<void> {
    const { clock, options } = this.#context;
    const sinceMs = clock.monotonicMs();
    const watch = () => {
      const silentMs = clock.monotonicMs() - Math.max(sinceMs, this.#heardMs);
      if (silentMs >= options.silenceMs) this.#fail(new Error('the receiver of the snapshot does not answer'));
      else timer = clock.setTimer(options.silenceMs - silentMs, watch);
    };
    let timer = clock.setTimer(options.silenceMs, watch);
    try {
      await this.#until(met);
    } finally {
      timer.cancel();
    }
  }

  async #until(met: () => boolean): Promise<void> {
    while (this.#failure === undefined && this.#broken === undefined && !met()) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
    if (this.#failure !== undefined) throw this.#failure;
    if (this.#broken !== undefined && !this.#installed) throw new LinkBroken(this.#broken);
  }
}

function refusalError({ refusal, reason }: Extract<ReceiverMessage, { type: 'refused' }>): Error {
  switch (refusal) {
    case 'busy':
      return snapshotBusy(reason);
    case 'declined':
    case 'failed':
      return new Error(reason);
    case 'unknown':
      return new ServiceError('UNAVAILABLE', reason);
    default:
      return unreachable(refusal);
  }
}
