/**
 * Snapshots over gRPC: a connection of its own per transfer, so that bulk data never delays Raft messages.
 *
 * The sender writes a header, chunks and a last message; the receiver answers each with one byte once it has dealt
 * with it: accepted, stored, installed. At most `snapshotWindowChunks` are unanswered.
 */
import {
  Client,
  type ClientDuplexStream,
  type Metadata,
  type ServerDuplexStream,
  type StatusObject,
} from '@grpc/grpc-js';
import type { NodeId, SnapshotHeader, SnapshotReceiver, TransportHandlers } from '../../ports.ts';
import { decodeSnapshotHeader, encodeSnapshotHeader } from '../codec.ts';
import { splitChunks } from '../snapshot-chunks.ts';
import { WireError } from '../wire-bytes.ts';
import type { PeerContext } from './frame-peer.ts';
import { channelOptions } from './grpc-options.ts';
import { checkPeer, identityMetadata, RAFT_SERVICE, SNAPSHOT_ANSWER, SNAPSHOT_MESSAGE } from './handshake.ts';

/** Resolves once the peer has installed the snapshot. */
export async function sendSnapshot(
  context: PeerContext,
  node: NodeId,
  header: SnapshotHeader,
  chunks: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): Promise<void> {
  signal.throwIfAborted();
  const { options } = context;
  const stream = new SnapshotStream(context, node, signal);
  try {
    await stream.connected();
    stream.write(SNAPSHOT_MESSAGE.header, encodeSnapshotHeader(header));
    await stream.answered({ unansweredMax: 0, timeoutMs: options.snapshotAckTimeoutMs });
    for await (const chunk of splitChunks(chunks, options.snapshotChunkBytes)) {
      stream.write(SNAPSHOT_MESSAGE.chunk, chunk);
      const unansweredMax = options.snapshotWindowChunks - 1;
      await stream.answered({ unansweredMax, timeoutMs: options.snapshotAckTimeoutMs });
    }
    await stream.answered({ unansweredMax: 0, timeoutMs: options.snapshotAckTimeoutMs });
    stream.write(SNAPSHOT_MESSAGE.finish, Buffer.alloc(0));
    await stream.answered({ unansweredMax: 0, timeoutMs: options.snapshotInstallTimeoutMs });
  } finally {
    stream.close();
  }
}

/** The sender's end: counts what is unanswered and lets one caller wait for it. */
class SnapshotStream {
  readonly #context: PeerContext;
  readonly #client: Client;
  readonly #call: ClientDuplexStream<Buffer, Buffer>;
  readonly #signal: AbortSignal;
  readonly #onAbort = () => this.#fail(this.#signal.reason);
  #connected = false;
  #unanswered = 0;
  #failure: unknown;
  #wake: (() => void) | undefined;

  constructor(context: PeerContext, node: NodeId, signal: AbortSignal) {
    const address = context.resolveAddress(node);
    if (address === undefined) throw new Error(`the address of node ${node} is not known`);
    const { path, requestSerialize, responseDeserialize } = RAFT_SERVICE.snapshot;
    this.#context = context;
    this.#signal = signal;
    this.#client = new Client(address, context.credentials, channelOptions(context.options));
    const metadata = identityMetadata(context.local);
    this.#call = this.#client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadata);
    this.#call.on('metadata', (answer: Metadata) => this.#greeted(node, answer));
    this.#call.on('data', () => this.#answer());
    this.#call.on('status', (ended: StatusObject) => this.#fail(new Error(ended.details || 'the stream ended')));
    this.#call.on('error', () => undefined); // `status` tells the same
    signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  connected(): Promise<void> {
    return this.#until(() => this.#connected, this.#context.options.connectTimeoutMs);
  }

  write(kind: number, body: Uint8Array): void {
    this.#unanswered++;
    this.#call.write(Buffer.concat([Buffer.of(kind), body]));
  }

  answered(wanted: { readonly unansweredMax: number; readonly timeoutMs: number }): Promise<void> {
    return this.#until(() => this.#unanswered <= wanted.unansweredMax, wanted.timeoutMs);
  }

  close(): void {
    this.#signal.removeEventListener('abort', this.#onAbort);
    this.#call.cancel();
    this.#client.close();
  }

  #greeted(node: NodeId, answer: Metadata): void {
    const checked = checkPeer(answer, this.#context.local, this.#context.verifyPeer);
    if ('refusal' in checked) return this.#fail(new Error(checked.refusal.message));
    if (checked.peer.nodeId !== node) return this.#fail(new Error(`node ${checked.peer.nodeId} answers there`));
    this.#connected = true;
    this.#wake?.();
  }

  #answer(): void {
    this.#unanswered--;
    this.#wake?.();
  }

  #fail(reason: unknown): void {
    this.#failure ??= reason;
    this.#wake?.();
  }

  async #until(met: () => boolean, timeoutMs: number): Promise<void> {
    const timer = this.#context.clock.setTimer(timeoutMs, () => this.#fail(new Error('the peer does not answer')));
    try {
      while (this.#failure === undefined && !met()) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
      }
    } finally {
      timer.cancel();
    }
    if (this.#failure !== undefined) throw this.#failure;
  }
}

/** Takes a snapshot from a verified peer. Resolves when it is installed; the caller ends the stream either way. */
export async function receiveSnapshot(
  call: ServerDuplexStream<Buffer, Buffer>,
  from: NodeId,
  handlers: TransportHandlers,
): Promise<void> {
  let receiver: SnapshotReceiver | undefined;
  let finished = false;
  try {
    // Reading on only when a message is dealt with is what keeps a slow receiver's memory bounded.
    for await (const message of call.iterator({ destroyOnReturn: false })) {
      finished = await receiveMessage(message);
      if (finished) return;
    }
    throw new Error('the sender went away');
  } catch (error) {
    if (!finished) receiver?.abort(error instanceof Error ? error.message : String(error));
    throw error;
  }

  async function receiveMessage(message: Buffer): Promise<boolean> {
    const body = message.subarray(1);
    if (message[0] === SNAPSHOT_MESSAGE.header && receiver === undefined) {
      receiver = await handlers.onSnapshot(from, decodeSnapshotHeader(body));
      call.write(Buffer.of(SNAPSHOT_ANSWER.accepted));
    } else if (message[0] === SNAPSHOT_MESSAGE.chunk && receiver !== undefined) {
      await receiver.chunk(body);
      call.write(Buffer.of(SNAPSHOT_ANSWER.stored));
    } else if (message[0] === SNAPSHOT_MESSAGE.finish && receiver !== undefined) {
      await receiver.finish();
      call.write(Buffer.of(SNAPSHOT_ANSWER.installed));
      return true;
    } else {
      throw new WireError('unexpected message on a snapshot stream');
    }
    return false;
  }
}
