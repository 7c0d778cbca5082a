/**
 * A node's end of the network, as one process has it: arriving messages go through the process's door, and what the
 * process does for others while it is paused waits. Once it has ended, its waiting peers are notified.
 */
import type {
  GroupMessage,
  HeartbeatFrame,
  NodeId,
  SnapshotHeader,
  SnapshotReceiver,
  Transport,
  TransportHandlers,
} from '@remora/raft';

type Door = (fn: () => void) => void;

export interface ProcessTransportOptions {
  readonly inner: Transport;
  readonly door: Door;
  /** Before a frame leaves. */
  readonly onSend: (messages: readonly GroupMessage[]) => void;
  readonly onHeartbeat: (frame: HeartbeatFrame) => void;
}

export class ProcessTransport implements Transport {
  readonly #given: ProcessTransportOptions;
  /** Calls of peers that wait for this process: they fail when it ends. */
  readonly #open = new Set<(error: Error) => void>();

  constructor(given: ProcessTransportOptions) {
    this.#given = given;
  }

  start(handlers: TransportHandlers): void {
    const { inner, door } = this.#given;
    inner.start({
      onMessages: (from, messages) => door(() => handlers.onMessages(from, messages)),
      onHeartbeat: (from, frame) => door(() => handlers.onHeartbeat(from, frame)),
      onSnapshot: async (from, header) => {
        const receiver = await this.#ask(() => handlers.onSnapshot(from, header));
        return this.#receiver(receiver);
      },
      onUnreachable: (node) => door(() => handlers.onUnreachable(node)),
      onGone: (node) => door(() => handlers.onGone(node)),
    });
  }

  send(node: NodeId, messages: readonly GroupMessage[]): void {
    this.#given.onSend(messages);
    this.#given.inner.send(node, messages);
  }

  sendHeartbeat(node: NodeId, frame: HeartbeatFrame): void {
    this.#given.onHeartbeat(frame);
    this.#given.inner.sendHeartbeat(node, frame);
  }

  sendSnapshot(
    node: NodeId,
    header: SnapshotHeader,
    chunks: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
  ): Promise<void> {
    return this.#given.inner.sendSnapshot(node, header, chunks, signal);
  }

  stop(): Promise<void> {
    return this.#given.inner.stop();
  }

  /** The process has ended. */
  async end(): Promise<void> {
    for (const fail of [...this.#open]) fail(new Error('the process ended'));
    await this.#given.inner.stop();
  }

  #receiver(inner: SnapshotReceiver): SnapshotReceiver {
    return {
      chunk: (bytes) => this.#ask(() => inner.chunk(bytes)),
      finish: () => this.#ask(() => inner.finish()),
      abort: (reason) => this.#given.door(() => inner.abort(reason)),
    };
  }

  /** A call of a peer, made when the process can take it. */
  #ask<T>(call: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const fail = (error: unknown): void => {
        this.#open.delete(fail);
        reject(error);
      };
      this.#open.add(fail);
      this.#given.door(() => {
        call().then((value) => {
          this.#open.delete(fail);
          resolve(value);
        }, fail);
      });
    });
  }
}
