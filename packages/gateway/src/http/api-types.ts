import type { Principal } from '@remora/auth';

/** A request as the transport has read it. */
export interface ApiRequest {
  readonly method: string;
  /** Path and query, as they stand in the request line. */
  readonly target: string;
  /** The parsed body; undefined if there was none. */
  readonly body?: unknown;
  /** The parsed lines of a body of JSON lines, in place of `body`. */
  readonly lines?: readonly unknown[] | undefined;
  /**
   * Aborts when the client is gone or the node stops; its reason is the error to answer with if the client still
   * listens.
   */
  readonly signal: AbortSignal;
  readonly principal: Principal | undefined;
  /** The address of the caller, without its port. */
  readonly address?: string | undefined;
  /** Whether the caller has come by TLS. */
  readonly isSecure?: boolean;
  /** The header `traceparent`. */
  readonly trace?: string | undefined;
  /** The header `Last-Event-ID`. */
  readonly lastEventId?: string | undefined;
}

export interface ApiAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON; not sent if there are `events`. */
  readonly body: unknown;
  readonly events?: EventStream;
  /** The same for a stream of JSON values, one a line. */
  readonly lines?: LineStream;
  /** The request was well-formed, although the status is one of malformed requests. */
  readonly wellFormed?: true;
  /** Called if the client is gone before it has the answer: takes back what the answer granted. */
  readonly undelivered?: () => void;
}

/** Starts a stream of events. Returns the functions to call when the stream drains or closes. */
export type EventStream = (sink: EventSink) => EventSource;

interface EventSink {
  /**
   * Returns how many bytes the client has not taken yet; 0 when it keeps up, otherwise `onDrain` follows. `id`: a
   * client that reconnects names the last one (`Last-Event-ID`).
   */
  write(event: string, data: unknown, id?: number): number;
  /** Ends the stream with a last event. */
  end(event: string, data: unknown): void;
}

/** Starts a stream of JSON values. Returns the functions to call when the stream drains or closes. */
export type LineStream = (sink: LineSink) => EventSource;

interface LineSink {
  /** Returns false when the client is behind; then `onDrain` follows. */
  write(value: object): boolean;
  /** Returns how many bytes the client has not taken yet. */
  unread(): number;
  /** Ends the stream; with an error, which is the whole answer if nothing was written before. */
  end(error?: StreamError): void;
}

export interface StreamError {
  /** The answer if nothing was written before. */
  readonly answer: ApiAnswer;
  /** The last line otherwise. */
  readonly line: object;
}

export interface EventSource {
  /** The client has taken all that was written. */
  onDrain(): void;
  /** The stream has ended. */
  onClose(): void;
}
