import type { NodeId, TransportHandlers } from '../ports.ts';
import { decodeFrame } from './codec.ts';
import { HeartbeatDecoder, isHeartbeatFrame } from './heartbeat-codec.ts';

/** Decodes the frames that arrive on one peer's stream, and passes them to the node. */
export class IncomingFrames {
  readonly handlers: TransportHandlers;
  readonly #from: NodeId;
  readonly #heartbeats = new HeartbeatDecoder();

  constructor(from: NodeId, handlers: TransportHandlers) {
    this.#from = from;
    this.handlers = handlers;
  }

  /** Throws `WireError` for bytes that are not a valid frame. */
  take(frame: Uint8Array): void {
    if (isHeartbeatFrame(frame)) this.handlers.onHeartbeat(this.#from, this.#heartbeats.decode(frame));
    else this.handlers.onMessages(this.#from, decodeFrame(frame));
  }
}
