/** A request as a transport read it: `node/http` over real connections, tests without. */
export interface ApiRequest {
  readonly method: string;
  /** Path and query, as they stand in the request line. */
  readonly target: string;
  /** What the body says; undefined: there was none. */
  readonly body?: unknown;
  /** Aborts when the client is gone, or when the node stops: with the error to answer, if somebody still listens. */
  readonly signal: AbortSignal;
}

export interface ApiAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  /** To be written as JSON; of no importance where events are told instead. */
  readonly body: unknown;
  readonly events?: EventStream;
  /** To be called when the client was gone before it had the answer: takes back what the answer gave to it. */
  readonly undelivered?: () => void;
}

/** Begins to tell events, and gives what is to be told of how that goes. */
export type EventStream = (sink: EventSink) => EventSource;

export interface EventSink {
  /** Gives how many bytes the client has not taken yet; 0 when it keeps up, and otherwise `onDrain` follows. */
  write(event: string, data: unknown): number;
}

export interface EventSource {
  /** The client takes more again. */
  onDrain(): void;
  /** Nobody listens any more. */
  onClose(): void;
}
