import type { ServiceError } from '@remora/base';
import type { Caller, Callers } from './access.ts';

/**
 * Calls between roles. All calls of one pair of nodes share one stream and are sent in batches, one frame per loop
 * turn; a call inside one process goes to its handler directly, without codec or socket (design §1).
 *
 * Callbacks instead of promises: one call must cost about a microsecond.
 */
export interface Method<Request, Reply> {
  /** Dotted, unique: `range.execute`. */
  readonly name: string;
  /** The callers outside of this process that may call it (access.ts). */
  readonly callers: Callers;
  readonly encodeRequest: (request: Request) => unknown;
  /** Checks and types a received value; throws for anything else. */
  readonly decodeRequest: (raw: unknown) => Request;
  readonly encodeReply: (reply: Reply) => unknown;
  readonly decodeReply: (raw: unknown) => Reply;
  /**
   * Whether the reply to a request describes a change. Default: never. If such a reply is too large to be sent, the
   * result is lost; it is not a refusal.
   */
  readonly changes?: (request: Request) => boolean;
}

export interface CallOptions {
  /** The call fails with UNKNOWN_OUTCOME after this; always finite. */
  readonly timeoutMs: number;
  /**
   * Another node may be called instead: the call ends with the detail `mute`, long before its time-out, if the peer is
   * asked for a sign of life and gives none. Default false. For calls that are usually answered at once.
   */
  readonly movable?: boolean;
}

/** Exactly one of the two is defined. */
export type Done<Reply> = (error: ServiceError | undefined, reply: Reply | undefined) => void;

export interface CallHandle {
  /** Tells the other side that the caller no longer waits; `done` is not called afterwards. */
  cancel(): void;
}

/** A server-to-client stream of messages that a request opened. */
export interface StreamHandle<Request> {
  /** Sends a further message to the other side (a watch create or cancel on an open watch stream). */
  send(request: Request): void;
  cancel(): void;
}

export interface RpcChannel {
  /**
   * `done` is called exactly once unless cancelled. Not sent for certain: UNAVAILABLE. Sent, and the link broke:
   * UNKNOWN_OUTCOME.
   */
  call<Request, Reply>(
    method: Method<Request, Reply>,
    request: Request,
    options: CallOptions,
    done: Done<Reply>,
  ): CallHandle;
  openStream<Request, Message>(
    method: Method<Request, Message>,
    request: Request,
    onMessage: (message: Message) => void,
    onEnd: (error: ServiceError | undefined) => void,
  ): StreamHandle<Request>;
}

export interface CallContext {
  readonly caller: Caller;
  /**
   * Runs if the caller cancelled or its link broke before `done`. Runs at once if that happened before this call,
   * because a handler that had to wait first may have something to undo.
   */
  onCancel(fn: () => void): void;
}

export interface StreamContext<Message> {
  readonly caller: Caller;
  /** Returns false if the peer is behind: stop until `onDrain`. */
  send(message: Message): boolean;
  onDrain(fn: () => void): void;
  end(error?: ServiceError): void;
}

export interface StreamSink<Request> {
  onMessage(request: Request): void;
  /** The other side cancelled, or the link broke. */
  onClose(): void;
}

/** Where handlers are registered; both the network server and the local channel dispatch to it. */
export interface RpcRegistry {
  handle<Request, Reply>(
    method: Method<Request, Reply>,
    handler: (request: Request, context: CallContext, done: Done<Reply>) => void,
  ): void;
  handleStream<Request, Message>(
    method: Method<Request, Message>,
    handler: (first: Request, context: StreamContext<Message>) => StreamSink<Request>,
  ): void;
}

/** Returns the channel to a node: local for this one, otherwise over the network (connected at first use). */
export interface RpcDialer {
  channel(nodeId: number): RpcChannel;
  /** Seed addresses, before any node id is known. */
  channelTo(address: string): RpcChannel;
}
