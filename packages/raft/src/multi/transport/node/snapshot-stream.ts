/**
 * Snapshots over gRPC: each stream of a transfer has a connection of its own, so that bulk data never delays Raft
 * messages, and nothing is said on it before the other side has named itself (handshake.ts K1).
 */
import {
  Client,
  type ClientDuplexStream,
  type Metadata,
  type ServerDuplexStream,
  type StatusObject,
  status,
} from '@grpc/grpc-js';
import type { Timer } from '@remora/base';
import type { NodeId } from '../../ports.ts';
import type { IncomingSnapshots } from '../snapshot-incoming.ts';
import type { SnapshotLink, SnapshotLinkEvents } from '../snapshot-outgoing.ts';
import type { PeerContext } from './frame-peer.ts';
import { channelOptions } from './grpc-options.ts';
import { checkPeer, identityMetadata, RAFT_SERVICE, refusalOf } from './handshake.ts';

/** How long a stream whose last message is under way may take to end by itself. */
const FAREWELL_MS = 1_000;

/** Begins a stream to `node`. */
export function dialSnapshot(context: PeerContext, node: NodeId, events: SnapshotLinkEvents): SnapshotLink {
  const address = context.resolveAddress(node);
  if (address !== undefined) return new GrpcSnapshotLink(context, node, address, events);
  context.clock.setImmediate(() => events.broken(`the address of node ${node} is not known`));
  return { send: () => undefined, close: () => undefined };
}

class GrpcSnapshotLink implements SnapshotLink {
  readonly #context: PeerContext;
  readonly #events: SnapshotLinkEvents;
  readonly #client: Client;
  readonly #call: ClientDuplexStream<Buffer, Buffer>;
  #timer: Timer;
  /** Messages for a peer that has not named itself yet: the opening, and perhaps an abort. */
  #waiting: Buffer[] | undefined = [];
  #over = false;

  constructor(context: PeerContext, node: NodeId, address: string, events: SnapshotLinkEvents) {
    const { path, requestSerialize, responseDeserialize } = RAFT_SERVICE.snapshot;
    const { clock, credentials, options, local } = context;
    this.#context = context;
    this.#events = events;
    this.#client = new Client(address, credentials, channelOptions(options));
    this.#call = this.#client.makeBidiStreamRequest(
      path,
      requestSerialize,
      responseDeserialize,
      identityMetadata(local),
    );
    this.#timer = clock.setTimer(options.connectTimeoutMs, () => this.#broken('the handshake took too long'));
    this.#call.on('metadata', (answer: Metadata) => this.#greeted(node, answer));
    this.#call.on('data', (message: Buffer) => {
      if (!this.#over) events.message(message);
    });
    this.#call.on('status', (ended: StatusObject) => this.#ended(ended));
    this.#call.on('error', () => undefined); // `status` tells the same
  }

  send(message: Buffer): void {
    if (this.#waiting !== undefined) this.#waiting.push(message);
    else if (!this.#over) this.#call.write(message);
  }

  close(last?: Buffer): void {
    if (this.#over) return;
    const heard = this.#waiting === undefined;
    this.#over = true;
    if (last === undefined || !heard) return this.#release();
    this.#call.write(last);
    this.#call.end();
    this.#timer = this.#context.clock.setTimer(FAREWELL_MS, () => this.#release());
  }

  #greeted(node: NodeId, answer: Metadata): void {
    if (this.#over) return;
    const { local, verifyPeer } = this.#context;
    const checked = checkPeer(answer, local, verifyPeer);
    if ('refusal' in checked) return this.#broken(checked.refusal.message, true);
    if (checked.peer.nodeId !== node) return this.#broken(`node ${checked.peer.nodeId} answers there`, true);
    this.#timer.cancel();
    const waiting = this.#waiting ?? [];
    this.#waiting = undefined;
    for (const message of waiting) this.#call.write(message);
  }

  #ended(ended: StatusObject): void {
    if (this.#over) return this.#release();
    const refusal = refusalOf(ended);
    // A peer that is stopping does not refuse us; it may be back in time.
    this.#broken(ended.details || 'the stream ended', refusal !== undefined && refusal.code !== 'UNAVAILABLE');
  }

  #broken(reason: string, final = false): void {
    if (this.#over) return;
    this.#over = true;
    this.#release();
    this.#events.broken(reason, final);
  }

  #release(): void {
    this.#timer.cancel();
    this.#call.cancel();
    this.#client.close();
  }
}

/** Hands a verified peer's stream to the node's transfers. Resolves when the stream is over. */
export function receiveSnapshotStream(
  call: ServerDuplexStream<Buffer, Buffer>,
  from: NodeId,
  transfers: IncomingSnapshots,
): Promise<void> {
  return new Promise((resolve) => {
    const stream = transfers.accept(from, {
      send: (message) => {
        call.write(message);
      },
      end: (reason) => {
        call.emit('error', { code: status.ABORTED, details: reason });
        resolve();
      },
    });
    // What is not taken yet is bounded by the window (snapshot-incoming.ts I4).
    call.on('data', (message: Buffer) => stream.message(message));
    const over = () => {
      stream.broken();
      call.end();
      resolve();
    };
    call.on('cancelled', over);
    call.on('end', over);
    call.on('close', over);
    call.on('error', over);
  });
}
