/**
 * Receives snapshots from other nodes: the transfers of one node, each over one stream after another.
 *
 * I1. Each chunk goes into the receiver once and in order, `finish` once; calls of one receiver do not overlap.
 * I2. A transfer listens to one stream, the one with the highest number; it ends the older one, and refuses a late one.
 * I3. After its stream ends, a transfer stays open for `resumeMs`; then the receiver is aborted. This does not apply
 *     while it installs: nothing stops the installation, and the outcome is kept for a stream that asks for it.
 * I4. Per transfer, at most the window is received and not stored. The handlers bound the number of transfers by
 *     refusing; kept outcomes are bounded in number and time.
 * I5. A node sends one snapshot at a time to a replica (snapshot-sender.ts S1), so a new transfer means that the older
 *     one does not continue.
 */
import { assert, type Clock, type Timer, unreachable } from '@remora/base';
import type { NodeId, SnapshotHeader, SnapshotReceiver, TransportHandlers } from '../ports.ts';
import {
  decodeSenderMessage,
  encodeReceiverMessage,
  type ReceiverMessage,
  type SenderMessage,
  type SnapshotRefusal,
} from './snapshot-messages.ts';
import { isSnapshotBusy, reasonOf, type SnapshotTraffic, type SnapshotTransferOptions } from './snapshot-transfer.ts';
import { WireError } from './wire-bytes.ts';

/** The receiving end of one stream. */
export interface IncomingLink {
  send(message: Buffer): void;
  /** Ends the stream after everything sent has left. */
  end(reason: string): void;
}

/** Receives a stream's events from the transport. */
export interface IncomingStream {
  message(bytes: Uint8Array): void;
  /** The stream is over. */
  broken(): void;
}

export interface IncomingContext {
  readonly clock: Clock;
  readonly options: SnapshotTransferOptions;
  readonly traffic: SnapshotTraffic;
  readonly onSnapshot: TransportHandlers['onSnapshot'];
}

/** Outcomes kept for streams that ask for them (I4). */
const OUTCOMES_MAX = 256;
/** How long an outcome is kept, in multiples of `resumeMs`: longer than any sender tries. */
const OUTCOME_KEPT_RESUMES = 4;

export class IncomingSnapshots {
  readonly #context: IncomingContext;
  readonly #transfers = new Map<string, Transfer>();
  /** Ended transfers, oldest first. */
  readonly #ended = new Map<string, Timer>();
  #stopped = false;

  constructor(context: IncomingContext) {
    this.#context = context;
  }

  /** A verified peer began a stream. */
  accept(from: NodeId, link: IncomingLink): IncomingStream {
    let transfer: Transfer | undefined;
    let over = false;
    const end = (reason: string) => {
      over = true;
      transfer?.left(link);
      link.end(reason);
    };
    return {
      message: (bytes) => {
        if (over) return;
        try {
          const message = decodeSenderMessage(bytes);
          if (transfer !== undefined) transfer.message(link, message);
          else if (message.type === 'open') transfer = this.#open(from, link, message);
          else throw new WireError('a snapshot stream must start with its opening');
        } catch (error) {
          if (!(error instanceof WireError)) throw error;
          end(error.message);
        }
      },
      broken: () => {
        over = true;
        transfer?.left(link);
      },
    };
  }

  /** Ends all transfers. */
  stop(reason: string): void {
    this.#stopped = true;
    for (const transfer of this.#transfers.values()) transfer.fail('failed', reason);
    for (const timer of this.#ended.values()) timer.cancel();
    this.#transfers.clear();
    this.#ended.clear();
  }

  #open(from: NodeId, link: IncomingLink, open: Extract<SenderMessage, { type: 'open' }>): Transfer | undefined {
    const key = `${from}/${open.id}`;
    const known = this.#transfers.get(key);
    if (known !== undefined) {
      known.take(link, open.attempt);
      return known;
    }
    if (this.#stopped || open.attempt > 1) {
      const reason = this.#stopped
        ? 'the node is stopping'
        : 'this node does not know the transfer: it must start again';
      refuse(link, this.#stopped ? 'failed' : 'unknown', reason);
      return undefined;
    }
    for (const older of this.#transfers.values()) {
      if (older.isFor(from, open.header)) older.fail('failed', 'replaced by a newer transfer'); // I5
    }
    const transfer = new Transfer(this.#context, from, open.header, (keep) =>
      keep ? this.#over(key) : this.#forget(key),
    );
    this.#transfers.set(key, transfer);
    transfer.take(link, open.attempt);
    return transfer;
  }

  /** Keeps the outcome of a transfer for a while (I3). */
  #over(key: string): void {
    if (this.#stopped) return;
    const { clock, options } = this.#context;
    this.#ended.set(
      key,
      clock.setTimer(options.resumeMs * OUTCOME_KEPT_RESUMES, () => this.#forget(key)),
    );
    const oldest = this.#ended.keys().next().value;
    if (this.#ended.size > OUTCOMES_MAX && oldest !== undefined) this.#forget(oldest);
  }

  #forget(key: string): void {
    this.#ended.get(key)?.cancel();
    this.#ended.delete(key);
    this.#transfers.delete(key);
  }
}

/**
 * opening → receiving → installing → installed; from each of the first three → failed.
 */
type State =
  | { readonly at: 'opening' }
  | { readonly at: 'receiving' | 'installing'; readonly receiver: SnapshotReceiver }
  | { readonly at: 'installed' }
  | { readonly at: 'failed'; readonly refusal: SnapshotRefusal; readonly reason: string };

class Transfer {
  readonly #context: IncomingContext;
  readonly #from: NodeId;
  readonly #header: SnapshotHeader;
  readonly #over: (keepOutcome: boolean) => void;
  #state: State = { at: 'opening' };
  /** The current stream (I2). */
  #link: IncomingLink | undefined;
  #attempt = 0;
  /** Received and not stored yet; the receiver may be storing the first one. */
  #queue: Uint8Array[] = [];
  #received = 0;
  #stored = 0;
  /** The number of chunks, once the sender has sent it. */
  #count: number | undefined;
  #storing = false;
  #hold: Timer | undefined;
  #working: Timer | undefined;

  constructor(context: IncomingContext, from: NodeId, header: SnapshotHeader, over: (keepOutcome: boolean) => void) {
    this.#context = context;
    this.#from = from;
    this.#header = header;
    this.#over = over;
    this.#showWork();
    void this.#begin();
  }

  /** Whether it is a transfer from that node to that replica that is in progress and not yet installing. */
  isFor(from: NodeId, { groupId, to }: SnapshotHeader): boolean {
    const open = this.#state.at === 'opening' || this.#state.at === 'receiving';
    return open && this.#from === from && this.#header.groupId === groupId && this.#header.to === to;
  }

  /** A stream of this transfer begins. */
  take(link: IncomingLink, attempt: number): void {
    if (attempt <= this.#attempt) return link.end('replaced by a newer stream'); // I2
    this.#attempt = attempt;
    const older = this.#link;
    this.#link = link;
    older?.end('replaced by a newer stream'); // I2
    this.#hold?.cancel();
    this.#answerOpening();
  }

  /** The stream is over (I3). */
  left(link: IncomingLink): void {
    if (this.#link !== link) return;
    this.#link = undefined;
    if (this.#state.at === 'installed' || this.#state.at === 'failed') return;
    const { clock, options } = this.#context;
    this.#hold = clock.setTimer(options.resumeMs, () =>
      this.fail('failed', 'the sender disconnected and did not return in time'),
    );
  }

  message(link: IncomingLink, message: SenderMessage): void {
    if (this.#link !== link) return; // I2
    switch (message.type) {
      case 'open':
        throw new WireError('a snapshot stream was opened twice');
      case 'chunk':
        return this.#chunk(message.number, message.bytes);
      case 'finish':
        if (message.count !== this.#received) throw new WireError('a snapshot ended before all its chunks arrived');
        this.#count = message.count;
        void this.#store();
        return;
      case 'abort':
        return this.fail('failed', message.reason);
      default:
        unreachable(message);
    }
  }

  /** Ends the transfer, unless it is installing already (I3). */
  fail(refusal: SnapshotRefusal, reason: string): void {
    const state = this.#state;
    if (state.at !== 'opening' && state.at !== 'receiving') return;
    this.#end({ at: 'failed', refusal, reason });
    if (state.at === 'receiving') state.receiver.abort(reason);
  }

  // ---------------------------------------------------------------------------------------------- progress

  async #begin(): Promise<void> {
    let receiver: SnapshotReceiver;
    try {
      receiver = await this.#context.onSnapshot(this.#from, this.#header);
    } catch (error) {
      return this.fail(isSnapshotBusy(error) ? 'busy' : 'declined', reasonOf(error));
    }
    if (this.#state.at === 'failed') return receiver.abort(this.#state.reason);
    assert(this.#state.at === 'opening', 'a transfer is opened once');
    this.#state = { at: 'receiving', receiver };
    this.#answerOpening();
  }

  #chunk(number: number, bytes: Uint8Array): void {
    if (this.#state.at !== 'receiving') return;
    if (number !== this.#received)
      throw new WireError(`received chunk ${number} of a snapshot instead of chunk ${this.#received}`);
    if (this.#queue.length >= this.#context.options.windowChunks) {
      throw new WireError('received more chunks of a snapshot than allowed'); // I4
    }
    this.#received++;
    this.#queue.push(bytes);
    const { traffic } = this.#context;
    traffic.receivedBytes += bytes.length;
    traffic.receiveBuffered += bytes.length;
    traffic.receiveBufferedMost = Math.max(traffic.receiveBufferedMost, traffic.receiveBuffered);
    void this.#store();
  }

  /** Passes queued chunks on; one call runs at a time (I1). */
  async #store(): Promise<void> {
    if (this.#storing) return;
    this.#storing = true;
    try {
      for (let bytes = this.#queue[0]; bytes !== undefined; bytes = this.#queue[0]) {
        if (this.#state.at !== 'receiving') return;
        await this.#state.receiver.chunk(bytes);
        if (this.#state.at !== 'receiving') return;
        this.#queue.shift();
        this.#context.traffic.receiveBuffered -= bytes.length;
        this.#stored++;
        this.#answer({ type: 'stored', stored: this.#stored });
      }
      if (this.#state.at !== 'receiving' || this.#count !== this.#stored) return;
      const { receiver } = this.#state;
      this.#state = { at: 'installing', receiver };
      await receiver.finish();
      this.#end({ at: 'installed' });
    } catch (error) {
      this.#failed(error);
    } finally {
      this.#storing = false;
    }
  }

  /** The receiver itself failed. */
  #failed(error: unknown): void {
    if (this.#state.at === 'receiving') this.fail('failed', reasonOf(error));
    else if (this.#state.at === 'installing') this.#end({ at: 'failed', refusal: 'failed', reason: reasonOf(error) });
  }

  #end(outcome: Extract<State, { at: 'installed' | 'failed' }>): void {
    this.#state = outcome;
    this.#hold?.cancel();
    this.#working?.cancel();
    for (const bytes of this.#queue) this.#context.traffic.receiveBuffered -= bytes.length;
    this.#queue = [];
    this.#answerOpening();
    // There are no later streams for a refused offer (snapshot-outgoing.ts O3).
    this.#over(outcome.at === 'installed' || outcome.refusal === 'failed');
  }

  // ---------------------------------------------------------------------------------------------- answers

  /** Tells a stream the state of the transfer; nothing while it is being opened. */
  #answerOpening(): void {
    const { windowChunks } = this.#context.options;
    const state = this.#state;
    const link = this.#link;
    switch (state.at) {
      case 'opening':
        return;
      case 'receiving':
      case 'installing':
        return this.#answer({ type: 'ready', wanted: this.#received, stored: this.#stored, window: windowChunks });
      case 'installed':
        this.#answer({ type: 'installed' });
        return link?.end('the snapshot is installed');
      case 'failed':
        if (link !== undefined) refuse(link, state.refusal, state.reason);
        return;
      default:
        unreachable(state);
    }
  }

  #answer(message: ReceiverMessage): void {
    this.#link?.send(encodeReceiverMessage(message));
  }

  /** Shows the sender that the receiver is alive while an answer is pending. */
  #showWork(): void {
    const { clock, options } = this.#context;
    this.#working = clock.setTimer(options.workingMs, () => {
      if (this.#state.at !== 'receiving' || this.#storing) this.#answer({ type: 'working' });
      this.#showWork();
    });
  }
}

function refuse(link: IncomingLink, refusal: SnapshotRefusal, reason: string): void {
  link.send(encodeReceiverMessage({ type: 'refused', refusal, reason }));
  link.end(reason);
}
