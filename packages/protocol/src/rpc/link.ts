import type { Bytes, ServiceError } from '@remora/base';

/** Frames are at most about 1 MiB of small items or one large item; this bounds what a peer may make us buffer. */
export const FRAME_BYTES_MAX = 64 << 20;

/**
 * An ordered, reliable stream of frames between two processes, as a port: a socket, or
 * memory in tests and in the simulator. It may break at any moment; what was sent before may or may not have arrived.
 */
export interface FrameLink {
  /** Attaches the receiver, once, before anything is delivered. `onOpen` follows when the handshake is done. */
  start(receiver: FrameReceiver): void;
  /**
   * Sends one frame. False when the link's buffer is full: the frame is taken, but hold further ones until `onDrain`.
   */
  send(frame: Uint8Array): boolean;
  /** Told how much waits for this link to have room, by who bounds that for several links together. */
  holdsBack?(bytes: number): void;
  /** Ends the link; `onClose` is not called for it. */
  close(reason?: ServiceError): void;
}

export interface FrameReceiver {
  onOpen(): void;
  /** Something came, if only a part of a frame: a sign of life. Not of every link. */
  onHeard?(): void;
  /** `frame` belongs to the receiver. */
  onFrame(frame: Bytes): void;
  onDrain(): void;
  /** Final; called at most once, also when the link never opened. */
  onClose(error: ServiceError): void;
}
