import type { Bytes, ServiceError } from '@remora/base';

/**
 * Frames are at most about 1 MiB of small items or one large item; this bounds what a peer can make this process
 * buffer.
 */
export const FRAME_BYTES_MAX = 64 << 20;

/**
 * An ordered, reliable stream of frames between two processes, as a port: a socket, or memory in tests and in the
 * simulator. It may break at any moment; earlier frames may or may not have arrived.
 */
export interface FrameLink {
  /** Attaches the receiver, once, before anything is delivered. `onOpen` follows when the handshake is done. */
  start(receiver: FrameReceiver): void;
  /**
   * Sends one frame. Returns false if the link's buffer is full: the frame is accepted, but hold further ones until
   * `onDrain`.
   */
  send(frame: Uint8Array): boolean;
  /**
   * Reports how much waits until this link has room; called by the component that bounds that for several links
   * together.
   */
  holdsBack?(bytes: number): void;
  /** Ends the link; `onClose` is not called for it. */
  close(reason?: ServiceError): void;
}

export interface FrameReceiver {
  onOpen(): void;
  /** Something arrived, perhaps only a part of a frame: a sign of life. Not every link reports it. */
  onHeard?(): void;
  /** `frame` belongs to the receiver. */
  onFrame(frame: Bytes): void;
  onDrain(): void;
  /** Final; called at most once, even if the link never opened. */
  onClose(error: ServiceError): void;
}
