/** A request as the transport has read it. */
export interface ApiRequest {
  readonly method: string;
  /** Path and query, as they stand in the request line. */
  readonly target: string;
  /** The parsed body; undefined if there was none. */
  readonly body?: unknown;
  /**
   * Aborts when the client is gone or the node stops; its reason is the error to answer with if the client still
   * listens.
   */
  readonly signal: AbortSignal;
}

export interface ApiAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sent as JSON; not sent if there are `events`. */
  readonly body: unknown;
  readonly events?: EventStream;
  /** Called if the client is gone before it has the answer: takes back what the answer granted. */
  readonly undelivered?: () => void;
}

/** Starts a stream of events. Returns the functions to call when the stream drains or closes. */
export type EventStream = (sink: EventSink) => EventSource;

interface EventSink {
  /** Returns how many bytes the client has not taken yet; 0 when it keeps up, otherwise `onDrain` follows. */
  write(event: string, data: unknown): number;
}

interface EventSource {
  /** The client has taken all that was written. */
  onDrain(): void;
  /** The stream has ended. */
  onClose(): void;
}
